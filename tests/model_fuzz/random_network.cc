// Random networks: layers are proposed with odd sizes and kept if they can be built.
#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/ops.h"
#include "artel/predict/batches.h"
#include "tests/model_fuzz/network_case.h"

namespace artel::model_fuzz {
namespace {

int64_t between(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
}

bool one_in(Random& random, uint64_t n) { return random.below(n) == 0; }

template <typename T>
const T& pick(Random& random, const std::vector<T>& from) {
  return from[random.below(from.size())];
}

// Sizes where kernels change their ways: 1, primes, one less and one more than a vector.
int64_t size(Random& random, int64_t most) {
  static const std::vector<int64_t> sizes = {1,  1,  2,  2,  3,  3,  4,  5,  5,  6,
                                             7,  8,  9,  11, 13, 15, 16, 17, 19, 24,
                                             31, 32, 33, 47, 48, 49, 63, 64, 65};
  for (;;)
    if (const int64_t value = pick(random, sizes); value <= most) return value;
}

std::string pair(Random& random, int64_t least, int64_t most) {
  const int64_t first = between(random, least, most);
  if (!one_in(random, 4)) return std::to_string(first);
  return fmt::format("{}x{}", first, between(random, least, most));
}

std::string conv_options(Random& random) {
  std::string text;
  if (one_in(random, 3)) text += " stride " + pair(random, 1, 3);
  if (one_in(random, 2)) text += " padding " + pair(random, 0, 3);
  if (one_in(random, 4)) text += " dilation " + pair(random, 1, 3);
  if (one_in(random, 4)) text += fmt::format(" groups {}", between(random, 1, 4));
  if (one_in(random, 3)) text += " no_bias";
  return text;
}

std::string pool_options(Random& random) {
  std::string text;
  if (one_in(random, 2)) text += " stride " + pair(random, 1, 3);
  if (one_in(random, 2)) text += " padding " + pair(random, 0, 2);
  return text;
}

std::string random_layer(Random& random, const Shape& shape, int depth);

std::string block(Random& random, const Shape& shape, int depth) {
  std::vector<std::string> layers;
  for (int64_t n = between(random, 1, 3); n > 0; --n)
    layers.push_back(random_layer(random, shape, depth + 1));
  return fmt::format("{{ {} }}", join(layers, " | "));
}

// One of the divisors of n.
int64_t divisor(Random& random, int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  return divisors.empty() ? 1 : pick(random, divisors);
}

std::string reshaped(Random& random, const Shape& shape) {
  int64_t left = shape.elements();
  std::vector<std::string> extents;
  for (int64_t n = between(random, 1, 4); n > 1; --n) {
    const int64_t extent = divisor(random, std::max<int64_t>(1, left));
    extents.push_back(std::to_string(extent));
    left /= std::max<int64_t>(1, extent);
  }
  extents.push_back(one_in(random, 3) ? "-1" : std::to_string(left));
  return join(extents, "x");
}

// A layer that may fit samples of this shape. `depth` counts nested blocks.
std::string random_layer(Random& random, const Shape& shape, int depth) {
  static const std::vector<std::string> activations = {
      "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus", "softmax", "log_softmax"};
  const int64_t width = shape.rank() > 0 ? shape.back() : 1;
  switch (random.below(shape.rank() == 3 ? 30 : 22)) {
    case 0:
    case 1:
    case 2:
      return fmt::format("dense {}{}", size(random, 65), one_in(random, 4) ? " no_bias" : "");
    case 3:
    case 4:
    case 5:
      return pick(random, activations);
    case 6:
      return one_in(random, 2) ? "leaky_relu"
                               : fmt::format("leaky_relu {}", random.uniform(-0.5f, 0.9f));
    case 7:
    case 8:
      return one_in(random, 2) ? "batch_norm"
                               : fmt::format("batch_norm epsilon {} momentum {}",
                                             pick<double>(random, {1e-5, 1e-3, 0.1}),
                                             pick<double>(random, {0, 0.1, 0.5, 1}));
    case 9:
      return one_in(random, 2) ? "layer_norm" : "layer_norm epsilon 0.01";
    case 10:
      return one_in(random, 2) ? "rms_norm" : "rms_norm epsilon 0.01";
    case 11:
      return fmt::format("dropout {}", pick<double>(random, {0, 0.1, 0.5, 0.9}));
    case 12:
      return fmt::format("attention {}{}{}{}{}", divisor(random, width),
                         one_in(random, 2) ? " causal" : "", one_in(random, 3) ? " rotary" : "",
                         one_in(random, 3) ? " no_bias" : "",
                         one_in(random, 3) ? " dropout 0.3" : "");
    case 13:
      return fmt::format("feed_forward {} {}", size(random, 33),
                         pick<std::string>(random, {"gelu", "gelu_tanh", "relu", "silu"}));
    case 14:
      return fmt::format("swiglu {}", size(random, 33));
    case 15:
      return fmt::format("learned_positions {}",
                         shape.rank() > 0 ? shape[0] + between(random, 0, 2) : 1);
    case 16:
      return one_in(random, 2) ? "sinusoidal_positions" : "class_token";
    case 17:
      return fmt::format("take {}", between(random, 0, 2));
    case 18:
      return "flatten";
    case 19:
      return "reshape " + reshaped(random, shape);
    case 20:
      if (depth >= 3) return "relu";
      return fmt::format("residual {}{}{}", block(random, shape, depth),
                         one_in(random, 3) ? " shortcut " + block(random, shape, depth) : "",
                         one_in(random, 2) ? " no_relu" : "");
    case 21:
      return depth >= 3 ? "tanh" : "sequential " + block(random, shape, depth);
    case 22:
    case 23:
    case 24:
      return fmt::format("conv {} {}{}", size(random, 33), pair(random, 1, 4),
                         conv_options(random));
    case 25:
      return fmt::format("conv {} 3 padding 1", size(random, 33));
    case 26:
      return fmt::format("conv_transpose {} {}{}{}", size(random, 17), pair(random, 1, 4),
                         conv_options(random),
                         one_in(random, 2) ? " output_padding " + pair(random, 0, 2) : "");
    case 27:
      return fmt::format("{} {}{}", one_in(random, 2) ? "max_pool" : "average_pool",
                         pair(random, 1, 3), pool_options(random));
    case 28:
      return fmt::format("{} {}", one_in(random, 2) ? "adaptive_average_pool" : "adaptive_max_pool",
                         pair(random, 1, 4));
    default:
      return fmt::format("patches {} {}", size(random, 17), between(random, 1, 4));
  }
}

Shape random_sample(Random& random) {
  switch (random.below(5)) {
    case 0:
      return {size(random, 65)};
    case 1:
      return {size(random, 17), size(random, 33)};
    case 2:
      return {size(random, 3), size(random, 5), size(random, 5), size(random, 7)};
    default:
      return {size(random, 17), size(random, 17), size(random, 17)};
  }
}

// The shape of one sample behind the layers, or nothing if they cannot be built and trained in
// lanes of this case.
std::optional<Shape> output_shape(const NetworkCase& network) {
  try {
    if (!is_small(network)) return std::nullopt;
    const Loss average = [](Value prediction, Value) { return mean(prediction); };
    for (int64_t lane = 0; lane < network.lanes; ++lane) {
      const int64_t samples =
          network.batch * (lane + 1) / network.lanes - network.batch * lane / network.lanes;
      if (samples > 0) training_graph(network.model(), batch_of(network.x(), samples), {}, average);
    }
    ModelGraph graph = inference_graph(network.model(), batch_of(network.x(), 2));
    const Shape shape = graph.graph.output("prediction").shape();
    if (shape.rank() < 1 || shape[0] != 2) return std::nullopt;
    return Shape(std::vector<int64_t>(shape.extents().begin() + 1, shape.extents().end()));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    return std::nullopt;
  }
}

optim::Options random_optimizer(Random& random) {
  static const std::vector<std::string> names = {
      "sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"};
  optim::Options options = {{"name", pick(random, names)}};
  options["lr"] = fmt::format("{}", pick<double>(random, {0.001, 0.01, 0.1}));
  if (one_in(random, 3)) options["weight_decay"] = "0.05";
  if (one_in(random, 4)) options["clip_norm"] = "0.5";
  if (one_in(random, 6)) options["clip_value"] = "0.1";
  if (one_in(random, 6)) options["decay_bias_and_norm"] = "true";
  return options;
}

}  // namespace

NetworkCase random_case(Random& random) {
  static const std::vector<std::string> losses = {
      "mse", "mse",           "l1",           "smooth_l1", "binary_cross_entropy",
      "kl",  "cross_entropy", "cross_entropy"};
  for (;;) {
    NetworkCase network;
    network.seed = random.next_u32();
    network.batch = between(random, 1, 9);
    network.lanes = between(random, 1, std::min<int64_t>(4, network.batch));
    network.threads = between(random, 1, 3);
    network.workers = one_in(random, 8) ? between(random, 2, 3) : 1;
    network.limit_memory = one_in(random, 4);
    network.tune = one_in(random, 12);
    network.exact_convolutions = one_in(random, 3);
    network.loss = pick(random, losses);
    if (network.loss == "cross_entropy" && one_in(random, 4)) network.label_smoothing = 0.1;
    network.optimizer = random_optimizer(random);
    network.sample = random_sample(random);
    if (one_in(random, 6)) {
      network.tokens = between(random, 1, 40);
      network.sample =
          one_in(random, 2) ? Shape{size(random, 9)} : Shape{size(random, 5), size(random, 9)};
      if (!one_in(random, 4))  // else the tokens are numbers
        network.layers.push_back(fmt::format("embedding {} {}", network.tokens, size(random, 17)));
    }
    std::optional<Shape> shape = network.layers.empty() ? network.sample : output_shape(network);
    if (!shape) continue;
    const int64_t wanted = between(random, 1, 7);
    for (int tries = 0; tries < 40 && std::ssize(network.layers) < wanted; ++tries) {
      network.layers.push_back(random_layer(random, *shape, 0));
      if (const std::optional<Shape> next = output_shape(network))
        shape = next;
      else
        network.layers.pop_back();
    }
    if (network.layers.empty()) continue;
    if (one_in(random, 2)) {
      const std::vector<std::string> before = network.layers;
      network.layers.push_back("flatten");
      network.layers.push_back(fmt::format("dense {}", size(random, 17)));
      if (const std::optional<Shape> next = output_shape(network))
        shape = next;
      else
        network.layers = before;
    }
    if (network.loss == "cross_entropy" && shape->rank() == 0) network.loss = "mse";
    network.flat_target = *shape == Shape{1} && one_in(random, 2);
    return network;
  }
}

}  // namespace artel::model_fuzz
