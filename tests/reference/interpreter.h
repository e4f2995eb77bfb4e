// The reference that compiled programs are compared with: runs any graph, forward and backward,
// node by node, in double precision, with the plainest loops. It has no planner, no fusion and no
// layouts, and shares nothing with artel/exec. It uses the keyed random numbers of base, so dropout
// masks are the same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artel/graph/graph.h"
#include "tests/reference/array.h"

namespace artel::reference {

// The key of random ops, in addition to the stream of their node; exec's StepContext has the same.
struct RandomKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int lane = 0;
};

// Random rounding errors: each number that a node reads or outputs is multiplied by a factor that
// differs from 1 by about `size`. Results that vary with it are those on which compiled programs,
// which round to f32, cannot agree: sums that cancel out, a ReLU at zero, a normalisation of almost
// equal numbers.
struct Noise {
  double size = 0;
  uint64_t seed = 0;
};

// By full name: inputs, parameters, states. Constants come from the graph.
using Leaves = std::map<std::string, Array>;

// Every value of the graph, by ValueId. The cache of cached_attention has its content after the
// run. Throws for a leaf that is missing or has another shape.
std::vector<Array> run(const Graph& graph, const Leaves& leaves, const RandomKey& key = {},
                       const Noise& noise = {});

// Reverse mode with its own rules (not graph's differentiate): the gradient of the scalar value
// `loss` with respect to each of `wrt` (leaves), zeros where the loss does not depend on it.
// `values` is the result of run().
std::vector<Array> gradients(const Graph& graph, const std::vector<Array>& values, ValueId loss,
                             const std::vector<ValueId>& wrt, const RandomKey& key = {},
                             const Noise& noise = {});

// All op names that have a forward rule, and those that have a gradient rule, here.
std::vector<std::string> forward_rules();
std::vector<std::string> gradient_rules();

}  // namespace artel::reference
