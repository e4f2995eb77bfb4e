// Winograd convolutions: 3x3, stride 1, without dilation or groups, with at most 2 rows of padding
// on each side. `output` is the size of an output tile: 2 or 4.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

bool winograd_applies(const ConvShape& shape);

std::unique_ptr<ConvKernel> make_winograd(const ConvShape& shape, ConvPass pass, int output,
                                          int threads, int lanes = 1);

// The gradient of the weights.
std::unique_ptr<ConvKernel> make_winograd_weights(const ConvShape& shape, int output, int threads,
                                                  int lanes);

}  // namespace artel::kernels
