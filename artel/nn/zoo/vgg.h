// VGG (Simonyan and Zisserman, 2014) with torchvision's structure and names: features.N,
// classifier.N.
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

struct VggOptions {
  int64_t classes = 1000;
  bool batch_norm = false;
  // For images of 32 x 32: the features are followed by one dense layer named "classifier", and
  // convolutions before a batch norm have no bias.
  bool small_images = false;
  int64_t width = 64;  // channels of the first convolution; the others are multiples of it
  double dropout = 0.5;
};

// `depth` is 11, 13, 16 or 19: the number of layers with weights.
Layer vgg(int depth, const VggOptions& options = {});

}  // namespace artel::nn
