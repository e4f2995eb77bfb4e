// Networks that are more than a chain: values with names, which layers set aside for later ones.
//
//   using namespace artel::nn;
//   // A skip across two blocks, and a second input.
//   const artel::Model model = split_inputs(
//       {{"x", {1, 8, 8}}, {"age", {1}}},
//       sequential({conv(8, {3, 3}, {.padding = {1, 1}}), keep_as("skip"), relu(),
//                   conv(8, {3, 3}, {.padding = {1, 1}}), add_kept("skip"), flatten(),
//                   concat_kept("age"), dense(2)}));
//
// The network's first input is called "x". In C++ a layer may also be any function of values, which
// finds them by `Build::kept`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Passes its input on, and keeps it under a name for later layers.
Layer keep_as(std::string name);
// Continues with a value that was kept, instead of the input.
Layer take_kept(std::string name);
// The input and a value that was kept, of equal shapes.
Layer add_kept(std::string name);
Layer subtract_kept(std::string name);
Layer multiply_kept(std::string name);
// The kept value appended to the input along an axis: 1 is features or channels, -1 the last.
Layer concat_kept(std::string name, int64_t axis = 1);

// Passes its input on, and makes it an output of the network besides the last value: for losses
// (`prediction.graph().output(name)`) and for Predictor.
Layer output(std::string name);

// A layer, of the same name as an earlier one beside it, that has no parameters of its own: it uses
// those of the other, as two towers that are one function do. Not for layers with states, such as
// batch_norm.
Layer shared(Layer layer);

// A network of several inputs, which lie side by side in each sample (data::join_inputs): f32 or
// i32 [batch, elements of all]. They are kept under their names; the first is what the network
// begins with.
Layer split_inputs(std::vector<std::pair<std::string, Shape>> inputs, Layer network);

}  // namespace artel::nn
