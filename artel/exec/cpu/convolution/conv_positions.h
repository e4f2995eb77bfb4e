// Convolutions of small images as products over the batch.
//
// On a 2x2 or 4x4 image, most patches reach into the padding. Here, the rows of a product are the
// samples of the batch at one pixel. They all use the same taps, and taps in the padding are
// skipped: on a 2x2 image, a 3x3 kernel costs 4 of its 9 taps. Supports any stride, padding, and
// dilation, but no groups.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

// True when the map is small and the batch, of `lanes` such lanes, large enough for this form to be
// the faster one.
bool positions_pay(const ConvShape& shape, int lanes = 1);

std::unique_ptr<ConvKernel> make_positions(const ConvShape& shape, ConvPass pass, int threads,
                                           int lanes = 1);

}  // namespace artel::kernels
