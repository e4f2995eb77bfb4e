// Residual networks (He et al., 2015).
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

struct ResNetOptions {
  int64_t classes = 1000;
  // For images of 32 x 32: the stem is a 3x3 convolution of stride 1 without pooling.
  bool small_images = false;
  int64_t width = 64;  // channels of the stem
  // Position of the stride in bottleneck blocks: the first convolution (1x1), as in the paper,
  // instead of the second (3x3), as in torchvision.
  bool stride_first = false;
};

// With torchvision's structure and names: conv1, bn1, layer1.0.conv1, layer1.0.downsample.0, fc.
// `depth` is 18, 34, 50, 101 or 152.
Layer resnet(int depth, const ResNetOptions& options = {});

struct CifarResNetOptions {
  int64_t classes = 10;
  int64_t width = 16;
};

// The paper's networks for CIFAR: three stages of basic blocks whose shortcuts have no parameters
// (option A: every second pixel, missing channels are zero); the last layer is named "linear".
// `depth` is 6n + 2: 20, 32, 44, 56.
Layer cifar_resnet(int depth, const CifarResNetOptions& options = {});

}  // namespace artel::nn
