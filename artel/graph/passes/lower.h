// Lowers the graph built by layers to the one that exec/program.h compiles, by all passes in order.
// The only caller of these passes.
//
//   0. split_layers       only if workers share layers. The later passes treat shards like layers.
//   1. fuse_forward       before differentiation, because the gradient rule of a fused layer needs
//                         one pass over memory, which later fusion would not find
//   2. differentiate      appends the backward nodes, each with its direction
//   3. prune              drops unused nodes from gradient rules, before any pass that counts the
//                         readers of a value
//   4. recompute_norms    last, because it depends on which values the backward pass reads
//
// Program then makes a program plan (layouts, groups of element-wise nodes, memory:
// exec/plan/plan.h). If the plan exceeds the memory limit, Program itself tries `recompute`, which
// needs the plan. A graph divided into parts, as for a pipeline, is cut here.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "artel/graph/graph.h"
#include "artel/graph/ops/shards.h"
#include "artel/graph/passes/recompute.h"

namespace artel {

struct Differentiation {
  // The name of an additional scalar input that multiplies the loss. Empty means 1.
  std::string weight = {};
  std::function<bool(const std::string&)> trained = {};  // selects parameters; null means all
};

// With `wanted`, the result also computes the gradients of the output "loss" with respect to the
// trained parameters (Graph::gradients).
Graph lower(const Graph& built, const std::optional<Differentiation>& wanted = {},
            const ShardPart& part = {}, const NormRecomputation& norms = {});

}  // namespace artel
