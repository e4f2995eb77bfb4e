// Networks as text, for configuration files: one layer a line, as docs/models.md describes.
//
//   "conv 64 3x3 padding same no_bias", "batch_norm", "relu", "max_pool 2",
//   "residual { conv 64 3x3 padding 1 | batch_norm } shortcut { conv 64 1x1 }",
//   "flatten", "head: dense 10"
//
// Parameters are named as in PyTorch's Sequential: by the layer's index, or by the name before a
// colon.
#pragma once

#include <string>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Throws an Error of kind invalid_argument that names the layer's index and its text. Safe for
// untrusted text: depth, number of words and sizes are bounded.
Layer parse_layers(const std::vector<std::string>& lines);

// How each kind of layer is written, such as "dropout [PROBABILITY]".
std::vector<std::string> layer_syntax();

}  // namespace artel::nn
