// Shapes of convolutions and pooling from their attributes, for the kernels of any device.
#pragma once

#include "artel/exec/cpu/convolution/conv.h"
#include "artel/exec/cpu/rows/pool.h"
#include "artel/graph/attributes.h"
#include "artel/tensor/shape.h"

namespace artel {

// `x` is the larger image (the input side of the convolution), `y` the smaller one, `w` the weights
// [k, c / groups, h, w].
kernels::ConvShape conv_shape(const Attributes& attributes, const Shape& x, const Shape& w,
                              const Shape& y);
// `x` is the image that is pooled.
kernels::PoolShape pool_shape(const Attributes& attributes, const Shape& x);

}  // namespace artel
