// Convolutions in which each channel has a filter of its own (as many groups as channels in and
// out): vectors run over channels, and bias, ReLU and cap are applied before a sum leaves its
// register.
#pragma once

#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

// Forward passes only; gradients are oneDNN's.
bool depthwise_applies(const ConvShape& shape, ConvPass pass);

std::unique_ptr<ConvKernel> make_depthwise(const ConvShape& shape);

}  // namespace artel::kernels
