// The small networks that everyone starts with.
#pragma once

#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Flattens, then dense layers with a ReLU between them; parameters 0.weight, 0.bias, 2.weight, ...
Layer mlp(const std::vector<int64_t>& hidden, int64_t classes = 10);

// x.w + b with one weight a feature: for two classes the score of the second beside 0 of the first,
// which makes cross entropy that of logistic regression; without classes the value. Parameters
// weight [1, features] and bias, zero at first.
Layer linear(int64_t classes = 2);

// LeNet-5 with ReLU and max pooling for images of 28 x 28; parameters conv1, conv2, fc1, fc2, fc3.
Layer lenet5(int64_t classes = 10);

}  // namespace artel::nn
