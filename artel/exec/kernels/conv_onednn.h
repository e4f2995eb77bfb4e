// Convolutions by oneDNN: any shape, groups included.
#pragma once

#include <memory>

#include "artel/exec/kernels/conv_kernel.h"

namespace artel::kernels {

std::unique_ptr<ConvKernel> make_onednn(const ConvShape& shape, ConvPass pass, int threads);

}  // namespace artel::kernels
