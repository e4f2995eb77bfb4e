// Networks in which some layers have fewer units or channels, as after pruning.
//
//   const artel::nn::Layer half = artel::nn::with_units({{"0", 8}}, network);
//
// The layers after a narrowed layer infer their input size, so nothing else changes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

using LayerUnits = std::map<std::string, int64_t>;  // by the name of a dense layer or convolution

// The result throws when it is built if a layer does not exist or is not wider than the given
// units.
Layer with_units(LayerUnits units, Layer network);

// Parses lines such as "layer1.0.conv1 8" (model.units). Throws for other text.
LayerUnits parse_units(const std::vector<std::string>& lines);
std::vector<std::string> units_text(const LayerUnits& units);

}  // namespace artel::nn
