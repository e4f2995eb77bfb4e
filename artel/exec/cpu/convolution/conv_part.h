// Convolutions that read only some pixels of an image, as convolutions of an image of those: 1x1
// kernels with a stride or padding, and images that end after the last window.
//
// oneDNN 2.6 gathers the former itself, but writes beyond its scratchpad when channels are few, and
// refuses the latter.
#pragma once

#include <functional>
#include <memory>

#include "artel/exec/cpu/convolution/conv_kernel.h"

namespace artel::kernels {

bool reads_part(const ConvShape& shape);

// Gathers the part into an image of its own (zeros for padding), or spreads the gradient of that
// image, around the kernel that `make` gives for it.
std::unique_ptr<ConvKernel> make_on_part(
    const ConvShape& shape, ConvPass pass,
    const std::function<std::unique_ptr<ConvKernel>(const ConvShape&)>& make);

}  // namespace artel::kernels
