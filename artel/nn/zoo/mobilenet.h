// MobileNetV2 (Sandler et al., 2018) with torchvision's structure and names: features.0.0,
// features.1.conv.0.0, classifier.1.
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

struct MobileNetOptions {
  int64_t classes = 1000;
  // All numbers of channels are multiplied by it and rounded to multiples of 8; those of the last
  // convolution, 1280, only grow.
  double multiplier = 1;
  // Where a convolution halves the image, it is padded at its end only, as TensorFlow pads images
  // of even sides, not on both sides.
  bool pad_end = false;
  double dropout = 0.2;
};

Layer mobilenet_v2(const MobileNetOptions& options = {});

}  // namespace artel::nn
