// Checks that network, loss, and data fit together, and advises if they do not.
#pragma once

#include "artel/run/config/setup.h"

namespace artel {

// Throws if the loss cannot compare the network's outputs with the targets, and suggests a change.
// Returns a warning for a network with more outputs than classes. Custom losses are not checked.
std::vector<std::string> check_outputs(const RunConfig& config, const data::SampleLayout& layout,
                                       const Shape& output);

// Throws if the network's token table is smaller than the vocabulary of the samples.
void check_vocabulary(const data::SampleLayout& layout, const Model& model,
                      const TensorType& sample);

// The output of a network for one sample.
Shape output_of(const Model& model, const TensorType& sample);

// Throws if weights differ from the network only in shape, and explains how to reinitialise those
// layers.
void check_shapes(const NamedTensors& weights, const Parameters& parameters,
                  const std::vector<std::string>& new_layers);

}  // namespace artel
