// Whether network, loss and data belong together, with advice where they do not.
#pragma once

#include "artel/run/setup.h"

namespace artel {

// Throws for a network whose outputs the loss cannot compare with the targets of these samples, and
// says what to change. A network with more outputs than there are classes is a warning, which is
// returned. Losses of one's own are not checked.
std::vector<std::string> check_outputs(const RunConfig& config, const data::SampleLayout& layout,
                                       const Shape& output);

// Throws for a network of layers that knows fewer tokens than the samples may have.
void check_vocabulary(const data::SampleLayout& layout, const Model& model,
                      const TensorType& sample);

// The output of a network for one sample.
Shape output_of(const Model& model, const TensorType& sample);

// Throws where weights differ from the network's in shape alone, and says how to train those layers
// anew.
void check_shapes(const NamedTensors& weights, const Parameters& parameters,
                  const std::vector<std::string>& new_layers);

}  // namespace artel
