// Layers. Parameter names and shapes match PyTorch, so published weights fit.
//
//   const artel::Model lenet = artel::nn::sequential(
//       {artel::nn::conv(6, {5, 5}), artel::nn::relu(), artel::nn::max_pool({2, 2}),
//        artel::nn::flatten(), artel::nn::named("head", artel::nn::dense(10))});
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
// A container whose children have their own names; adds no index.
Layer chain(std::vector<Layer> layers);
// body(x) + shortcut(x), or body(x) + x without a shortcut, optionally followed by ReLU.
Layer residual(Layer body, std::optional<Layer> shortcut = {}, bool relu_after = true);

struct DenseOptions {
  bool bias = true;
  WeightOrder order = WeightOrder::out_in;  // axis order of the stored weight
  Initialiser weight = {};                  // default: fan_in_uniform
  Initialiser initial_bias = {};            // default: fan_in_uniform
};
Layer dense(int64_t units, DenseOptions options = {});

struct ConvLayerOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  std::array<int64_t, 2> output_padding = {0, 0};  // transposed convolution only
  int64_t groups = 1;
  bool bias = true;
  Initialiser weight = {};  // default: fan_in_uniform
};
Layer conv(int64_t channels, std::array<int64_t, 2> kernel, ConvLayerOptions options = {});
Layer conv_transpose(int64_t channels, std::array<int64_t, 2> kernel,
                     ConvLayerOptions options = {});

// Convolution of sequences [batch, channels, length]; weight [channels, in / groups, kernel].
struct Conv1dLayerOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  Initialiser weight = {};  // default: fan_in_uniform
};
Layer conv1d(int64_t channels, int64_t kernel, Conv1dLayerOptions options = {});

struct PoolLayerOptions {
  std::array<int64_t, 2> stride = {0, 0};  // 0 means the kernel size
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
// The network for inference with batch norms folded into the preceding convolutions. Its weights
// come from fold_norms (predict/fold_norms.h).
Layer folding_norms(Layer network);
Layer layer_norm(double epsilon = 1e-5);
Layer rms_norm(double epsilon = 1e-5);

Layer dropout(double probability = 0.5);
// In training, zeroes this share of the image's patches of `size` pixels, for masked autoencoders.
Layer mask_patches(int64_t size, double share = 0.75);
Layer embedding(int64_t rows, int64_t width);
// The mean or the sum of the embeddings of each sample's tokens: [batch, width]. With
// `ignore_padding`, token 0 is ignored; a sample without other tokens gives zeros.
struct EmbeddingBagOptions {
  bool sum = false;
  bool ignore_padding = false;
};
Layer embedding_bag(int64_t rows, int64_t width, EmbeddingBagOptions options = {});
Layer flatten();
Layer reshape(std::vector<int64_t> sample_shape);

// relu, leaky_relu, gelu, gelu_tanh, silu, sigmoid, tanh, softmax, log_softmax, ... by name.
Layer activation(std::string name);
Layer relu();
Layer leaky_relu(double slope = 0.01);

}  // namespace artel::nn
