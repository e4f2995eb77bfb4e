// The layers. Names and shapes of parameters are PyTorch's, so that published weights fit.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "artel/graph/ops.h"
#include "artel/nn/layer.h"

namespace artel::nn {

// Containers. Children of `sequential` are named 0, 1, 2, ... unless `named` gives them a name.
Layer sequential(std::vector<Layer> layers);
Layer named(std::string name, Layer layer);
// One scope for children that name themselves: no index is added.
Layer chain(std::vector<Layer> layers);
// body(x) + shortcut(x), then ReLU if asked; without a shortcut, x itself.
Layer residual(Layer body, std::optional<Layer> shortcut = {}, bool relu_after = true);

struct DenseOptions {
  bool bias = true;
  WeightOrder order = WeightOrder::out_in;  // of the stored weight
  Initialiser weight = {};                  // default: fan_in_uniform
  Initialiser initial_bias = {};            // the same
};
Layer dense(int64_t units, DenseOptions options = {});

struct ConvLayerOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  std::array<int64_t, 2> output_padding = {0, 0};  // of the transposed convolution
  int64_t groups = 1;
  bool bias = true;
  Initialiser weight = {};  // default: fan_in_uniform
};
Layer conv(int64_t channels, std::array<int64_t, 2> kernel, ConvLayerOptions options = {});
Layer conv_transpose(int64_t channels, std::array<int64_t, 2> kernel,
                     ConvLayerOptions options = {});

struct PoolLayerOptions {
  std::array<int64_t, 2> stride = {0, 0};  // 0: the kernel
  std::array<int64_t, 2> padding = {0, 0};
};
Layer max_pool(std::array<int64_t, 2> kernel, PoolLayerOptions options = {});
Layer average_pool(std::array<int64_t, 2> kernel, PoolLayerOptions options = {});
Layer adaptive_average_pool(int64_t height, int64_t width);
Layer adaptive_max_pool(int64_t height, int64_t width);

struct BatchNormLayerOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
};
Layer batch_norm(BatchNormLayerOptions options = {});
Layer layer_norm(double epsilon = 1e-5);
Layer rms_norm(double epsilon = 1e-5);

Layer dropout(double probability = 0.5);
Layer embedding(int64_t rows, int64_t width);
Layer flatten();
Layer reshape(std::vector<int64_t> sample_shape);

// relu, leaky_relu, gelu, gelu_tanh, silu, sigmoid, tanh, softmax, log_softmax, ... by name.
Layer activation(std::string name);
Layer relu();
Layer leaky_relu(double slope = 0.01);

}  // namespace artel::nn
