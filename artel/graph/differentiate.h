// Reverse-mode differentiation as a transformation of a graph.
#pragma once

#include <vector>

#include "artel/graph/graph.h"

namespace artel {

// Appends to `loss`'s graph the nodes that compute the gradient of `loss` (a scalar), times `seed`
// (a scalar; 1 if empty), with respect to each value of `wrt`. Returns them in the order of `wrt`;
// a value that the loss does not depend on gets an empty handle.
//
// Cost: each node on a path from `wrt` to the loss is visited once, backwards, so the appended
// nodes are in the order in which gradients become ready: the last layers first. Nodes that are on
// no such path, such as frozen layers, cost nothing. A value used several times gets the sum of its
// users' gradients. Each appended node gets its direction: `backward` if it contributes to the
// gradient of a value that depends on some input, `weight_gradient` otherwise.
std::vector<Value> differentiate(Value loss, const std::vector<Value>& wrt, Value seed = {});

}  // namespace artel
