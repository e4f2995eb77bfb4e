// Named values, for networks that are more than a chain of layers.
//
//   using namespace artel::nn;
//   // A skip across two blocks, and a second input.
//   const artel::Model model = split_inputs(
//       {{"x", {1, 8, 8}}, {"age", {1}}},
//       sequential({conv(8, {3, 3}, {.padding = {1, 1}}), keep_as("skip"), relu(),
//                   conv(8, {3, 3}, {.padding = {1, 1}}), add_kept("skip"), flatten(),
//                   concat_kept("age"), dense(2)}));
//
// The network's first input is named "x". In C++, a layer may be any function of values, which it
// finds by `Build::kept`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Returns its input and stores it under a name for later layers.
Layer keep_as(std::string name);
// Returns a stored value instead of the input.
Layer take_kept(std::string name);
// Combines the input with a stored value of equal shape.
Layer add_kept(std::string name);
Layer subtract_kept(std::string name);
Layer multiply_kept(std::string name);
// Concatenates the input and a stored value along an axis: 1 is features or channels, -1 the last
// axis.
Layer concat_kept(std::string name, int64_t axis = 1);

// Returns its input and makes it an additional output of the network, for losses
// (`prediction.graph().output(name)`) and for Predictor.
Layer output(std::string name);

// A layer that shares the parameters of an earlier layer with the same name in the same scope, as
// in twin towers. Not for layers with state, such as batch_norm.
Layer shared(Layer layer);

// A network with several inputs, which are concatenated in each sample (data::join_inputs): f32 or
// i32 [batch, elements of all]. Stores them under their names; the network starts with the first.
Layer split_inputs(std::vector<std::pair<std::string, Shape>> inputs, Layer network);

}  // namespace artel::nn
