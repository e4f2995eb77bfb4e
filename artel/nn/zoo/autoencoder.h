// Networks that reproduce their input through a narrow code. Their output has the shape of the
// input, and their target is the input itself. Parameters are under "encoder" and "decoder", so a
// trained encoder can become part of another network.
#pragma once

#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Dense layers of these widths down to the code, whose width is the last one, and back.
Layer autoencoder(const std::vector<int64_t>& widths = {256, 64, 16});

// Convolutions of stride 2 with these channels, and transposed convolutions back.
Layer conv_autoencoder(const std::vector<int64_t>& channels = {16, 32});

}  // namespace artel::nn
