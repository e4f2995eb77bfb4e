// What the layers inside a network compute, by their names.
//
//   const artel::Model body = artel::transfer::ending_at(network, {"layer3", "layer4"});
//   artel::Predictor features(body, sample, weights);
//   const artel::Tensor last = features(images, artel::transfer::output_name("layer4"));
//
// A layer's name is the path that `artel info` shows, such as "layer4.1.conv2", or the beginning of
// it up to a dot: "layer4" is what the last layer of that stage computes. "before fc" is what the
// layer fc is given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/nn/model.h"

namespace artel::transfer {

struct LayerOutput {
  std::string name;
  TensorType type;  // of one sample
};

// All of them, the innermost names first where several are of one value, in the order in which they
// are computed.
std::vector<LayerOutput> layer_outputs(const Model& model, const TensorType& sample);

// How the positions of a value, the pixels of a map or the tokens of a text, become one vector.
enum class Pooling {
  mean,   // of tokens: of those that are not padding
  max,    // likewise
  whole,  // no pooling: all of it, as it is
};
Pooling pooling_by_name(const std::string& name);
std::string_view to_string(Pooling pooling);

// The network up to the last of these layers, with the output of each besides its last value. What
// lies behind is neither computed nor needs weights. Throws for a layer that does not exist, with
// the nearest names, when it is built.
Model ending_at(const Model& model, std::vector<std::string> layers,
                Pooling pooling = Pooling::mean);
std::string output_name(std::string_view layer);

}  // namespace artel::transfer
