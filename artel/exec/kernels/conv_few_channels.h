// Convolutions whose input has few channels, such as the first layer of a network.
//
// A patch is then short and its segments shorter still, so patches are copied into rows, a band of
// output pixels at a time: im2col on a buffer that stays in the cache. Any stride, padding and
// dilation; no groups.
#pragma once

#include <memory>

#include "artel/exec/kernels/conv_kernel.h"

namespace artel::kernels {

std::unique_ptr<ConvKernel> make_few_channels(const ConvShape& shape, ConvPass pass, int threads);

}  // namespace artel::kernels
