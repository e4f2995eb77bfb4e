// Networks that reproduce their input through a narrow code. Their output has the shape of the
// input, their target is the input itself. Parameters are under "encoder" and "decoder", so that a
// trained encoder can be the base of another network.
#pragma once

#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Dense layers of these widths down to the code, which is the last of them, and back.
Layer autoencoder(const std::vector<int64_t>& widths = {256, 64, 16});

// Convolutions of stride 2 with these channels, and transposed convolutions back.
Layer conv_autoencoder(const std::vector<int64_t>& channels = {16, 32});

}  // namespace artel::nn
