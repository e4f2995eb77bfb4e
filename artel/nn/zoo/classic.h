// Small classic networks.
#pragma once

#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Flattens the input, then dense layers with ReLU in between. Parameters 0.weight, 0.bias,
// 2.weight, ...
Layer mlp(const std::vector<int64_t>& hidden, int64_t classes = 10);

// x.w + b with one weight per feature. For two classes, the scores are 0 and x.w + b, so cross
// entropy is logistic regression; without classes, the output is the value. Parameters weight [1,
// features] and bias, initially zero.
Layer linear(int64_t classes = 2);

// LeNet-5 with ReLU and max pooling for images of 28 x 28; parameters conv1, conv2, fc1, fc2, fc3.
Layer lenet5(int64_t classes = 10);

}  // namespace artel::nn
