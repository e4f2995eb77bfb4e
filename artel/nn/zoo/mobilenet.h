// MobileNetV2 (Sandler et al., 2018) with torchvision's structure and names: features.0.0,
// features.1.conv.0.0, classifier.1.
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

struct MobileNetOptions {
  int64_t classes = 1000;
  // Width multiplier of all channels, rounded to multiples of 8. The last convolution has at least
  // 1280 channels.
  double multiplier = 1;
  // Pads strided convolutions only at the end, as TensorFlow does for even sizes, instead of on
  // both sides.
  bool pad_end = false;
  double dropout = 0.2;
};

Layer mobilenet_v2(const MobileNetOptions& options = {});

}  // namespace artel::nn
