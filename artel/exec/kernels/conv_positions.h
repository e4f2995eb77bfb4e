// Convolutions of small maps as products over images.
//
// On a 2x2 or 4x4 map most patches reach into the padding. Here the rows of a product are the
// images of the batch at one position of the map, so that all of them have the same taps and those
// outside the map are left out: on 2x2 maps a 3x3 kernel costs 4 of its 9 taps. Any stride, padding
// and dilation; no groups.
#pragma once

#include <memory>

#include "artel/exec/kernels/conv_kernel.h"

namespace artel::kernels {

// True when the map is small and the batch, of `lanes` such lanes, large enough for this form to be
// the faster one.
bool positions_pay(const ConvShape& shape, int lanes = 1);

std::unique_ptr<ConvKernel> make_positions(const ConvShape& shape, ConvPass pass, int threads,
                                           int lanes = 1);

}  // namespace artel::kernels
