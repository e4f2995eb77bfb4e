// Convolutions as products over image patches (im2col without its matrix).
//
// In an NHWC image the values under one row of a kernel are contiguous, so a patch is a few
// segments at fixed distances from its first value. Only padding needs a copy: bands of rows are
// copied with their border of zeros into a buffer that stays in the L2 cache. Any stride, padding,
// dilation and number of channels; no groups.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

// The forward pass, or the gradient of the input.
std::unique_ptr<ConvKernel> make_patch_image(const ConvShape& shape, bool backward, int threads);

// The gradient of the weights.
std::unique_ptr<ConvKernel> make_patch_weights(const ConvShape& shape, int threads, int lanes = 1);

}  // namespace artel::kernels
