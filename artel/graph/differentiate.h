// Reverse-mode differentiation as a transformation of a graph.
#pragma once

#include <vector>

#include "artel/graph/graph.h"

namespace artel {

// Appends the nodes that compute the gradient of the scalar `loss`, times the scalar `seed` (1 if
// empty), with respect to each value of `wrt`. Returns the gradients in the order of `wrt`; empty
// for a value on which the loss does not depend.
//
// Visits each node on a path from `wrt` to the loss once, backwards, so the appended nodes are in
// the order in which gradients become ready, last layers first. Other nodes, such as frozen layers,
// cost nothing. A value with several users gets the sum of their gradients. The direction of an
// appended node is `backward` if it contributes to the gradient of a value that depends on an
// input, and `weight_gradient` otherwise.
std::vector<Value> differentiate(Value loss, const std::vector<Value>& wrt, Value seed = {});

}  // namespace artel
