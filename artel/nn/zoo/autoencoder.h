// Autoencoders reproduce their input through a narrow code. Input, output, and target have the same
// shape. Parameters are named "encoder" and "decoder", so a trained encoder can become part of
// another network.
#pragma once

#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Dense layers of these widths down to the code, the last width, and back.
Layer autoencoder(const std::vector<int64_t>& widths = {256, 64, 16});

// Convolutions of stride 2 with these channels, and transposed convolutions back.
Layer conv_autoencoder(const std::vector<int64_t>& channels = {16, 32});

}  // namespace artel::nn
