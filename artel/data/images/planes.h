// Conversion of images that keep the channels of a pixel together.
#pragma once

#include "artel/tensor/tensor.h"

namespace artel::data {

// [n, height, width, channels] as planes, [n, channels, height, width]; any type of element.
Tensor channels_first(const Tensor& images);

}  // namespace artel::data
