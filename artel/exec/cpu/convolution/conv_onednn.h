// Convolutions by oneDNN: any shape, groups included.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

// `bf16` rounds the operands to bf16; sums and results stay f32.
std::unique_ptr<ConvKernel> make_onednn(const ConvShape& shape, ConvPass pass, bool bf16,
                                        int threads, int lanes = 1);

}  // namespace artel::kernels
