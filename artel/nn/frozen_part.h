// A network in two: what lies below everything that is trained, and the rest.
//
// The lower part is the same function in each epoch, so its values can be computed once and kept
// (run/kept_features.h). Both parts have the nodes, names and initial values of the whole.
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
  std::string layer;  // the last one below the cut
};

// Why there is no such part, for people.
struct NoFrozenPart {
  std::string reason;
};

// `trained` is whether the parameter with a full name is trained. The cut is as high as possible:
// no layer below it is trained or random, such as dropout, and all layers above it read one value
// of those below.
std::variant<FrozenPart, NoFrozenPart> cut_frozen(const Model& model, const TensorType& sample,
                                                  std::function<bool(const std::string&)> trained);

}  // namespace artel::nn
