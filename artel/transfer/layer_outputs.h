// Outputs of layers inside a network, by name.
//
//   const artel::Model body = artel::transfer::ending_at(network, {"layer3", "layer4"});
//   artel::Predictor features(body, sample, weights);
//   const artel::Tensor last = features(images, artel::transfer::output_name("layer4"));
//
// A layer's name is its path in `artel info`, such as "layer4.1.conv2", or a prefix up to a dot:
// "layer4" is the output of the last layer of that stage. "before fc" is the input of the layer fc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/nn/model.h"

namespace artel::transfer {

struct LayerOutput {
  std::string name;
  TensorType type;  // for one sample
};

// All outputs in order of computation. If a value has several names, the innermost comes first.
std::vector<LayerOutput> layer_outputs(const Model& model, const TensorType& sample);

// Reduction of the positions of a value (pixels of a map, tokens of a text) to one vector.
enum class Pooling {
  mean,   // ignores padding tokens
  max,    // ignores padding tokens
  whole,  // no pooling
};
Pooling pooling_by_name(const std::string& name);
std::string_view to_string(Pooling pooling);

// The network up to the last of these layers, with the output of each layer as an additional
// output. Later layers are not computed and need no weights. Building it throws for an unknown
// layer and suggests the nearest names.
Model ending_at(const Model& model, std::vector<std::string> layers,
                Pooling pooling = Pooling::mean);
std::string output_name(std::string_view layer);

}  // namespace artel::transfer
