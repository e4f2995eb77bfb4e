// Splits a network into the frozen part below all trained layers, and the rest.
//
// The lower part is the same function in each epoch, so its values can be computed once and cached
// (run/samples/frozen_layers.h). Both parts have the nodes, names, and initial values of the whole.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "artel/nn/model.h"

namespace artel::nn {

struct FrozenPart {
  Model below;        // from the input of the network to the value at the cut
  Model above;        // from that value to the prediction
  TensorType value;   // of one sample, at the cut
  std::string layer;  // last layer below the cut
};

// The reason why no frozen part exists, for messages.
struct NoFrozenPart {
  std::string reason;
};

// `trained` returns true for trained parameters, by full name. The cut is as high as possible: no
// layer below it is trained or random (such as dropout), and all layers above it read only one
// value from below.
std::variant<FrozenPart, NoFrozenPart> cut_frozen(const Model& model, const TensorType& sample,
                                                  std::function<bool(const std::string&)> trained);

}  // namespace artel::nn
