// 1x1 convolutions with stride 1 and without padding: matrix products over pixels.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

bool pointwise_applies(const ConvShape& shape);

std::unique_ptr<ConvKernel> make_pointwise(const ConvShape& shape, ConvPass pass, int threads,
                                           int lanes = 1, int together = 1);

}  // namespace artel::kernels
