// From the graph that layers build to the one that exec/program.h compiles: every pass, in its
// order. Nothing else in the library calls these passes one by one.
//
//   0. split_layers       if workers share layers: shards are layers like others to all that
//   follows
//   1. fuse_forward       before differentiation: the gradient rule of a fused layer undoes all of
//                         it in one pass over memory, which no fusion afterwards would find
//   2. differentiate      appends the backward nodes, each with its direction
//   3. prune              drops what gradient rules have made and nobody wants; before anything
//                         that counts who reads a value
//   4. recompute_norms    last, as it is about what the backward pass reads
//
// A graph that is cut into parts, as for a pipeline, is cut here. Program then makes a program plan
// of it (layouts, groups of element-wise nodes, memory: exec/plan.h) and, only if the plan exceeds
// the memory limit, tries `recompute` with ever smaller plans: it alone needs to know the plan.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/graph/graph.h"
#include "artel/graph/ops/shards.h"

namespace artel {

struct Differentiation {
  // The name of a scalar input, added to the graph, by which the loss is multiplied; empty: by 1.
  std::string weight = {};
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
};

// With `wanted`, the result computes the gradients of the output "loss" by the trained parameters
// (Graph::gradients).
Graph lower(const Graph& built, const std::optional<Differentiation>& wanted = {},
            const ShardPart& part = {});

}  // namespace artel
