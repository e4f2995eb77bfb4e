#include "tests/model_fuzz/random_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "artel/base/text.h"

namespace artel::model_fuzz {

int64_t between(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
}

bool one_in(Random& random, uint64_t n) { return random.below(n) == 0; }

int64_t random_size(Random& random, int64_t most) {
  static const std::vector<int64_t> sizes = {1,  1,  2,  2,  3,  3,  4,  5,  5,  6,
                                             7,  8,  9,  11, 13, 15, 16, 17, 19, 24,
                                             31, 32, 33, 47, 48, 49, 63, 64, 65};
  for (;;)
    if (const int64_t value = pick(random, sizes); value <= most) return value;
}

int64_t LayerMaker::divisor(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  return divisors.empty() ? 1 : pick(random_, divisors);
}

std::string LayerMaker::pair(int64_t least, int64_t most) {
  const int64_t first = between(random_, least, most);
  if (!one_in(4)) return std::to_string(first);
  return fmt::format("{}x{}", first, between(random_, least, most));
}

std::string LayerMaker::fresh(const char* prefix) { return fmt::format("{}{}", prefix, ++names_); }

std::string LayerMaker::activation() {
  static const std::vector<std::string> activations = {
      "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus", "softmax", "log_softmax"};
  return pick(random_, activations);
}

std::string LayerMaker::conv_options() {
  std::string text;
  if (one_in(3)) text += " stride " + pair(1, 3);
  if (one_in(2)) text += " padding " + pair(0, 3);
  if (one_in(4)) text += " dilation " + pair(1, 3);
  if (one_in(3)) text += " no_bias";
  return text;
}

std::string LayerMaker::pool_options() {
  std::string text;
  if (one_in(2)) text += " stride " + pair(1, 3);
  if (one_in(2)) text += " padding " + pair(0, 2);
  return text;
}

// Groups divide the channels before and after.
std::string LayerMaker::conv(const Shape& shape) {
  if (one_in(4)) {
    const int64_t groups = divisor(shape[0]);
    return fmt::format("conv {} {}{} groups {}", groups * between(random_, 1, 3), pair(1, 4),
                       conv_options(), groups);
  }
  if (one_in(3)) {  // where Winograd's kernels are good
    static const std::vector<int64_t> channels = {15, 16, 17, 24, 31, 32, 33};
    return fmt::format("conv {} 3 padding 1", pick(random_, channels));
  }
  if (one_in(5))
    return fmt::format("conv {} {} padding same{}", size(33),
                       pick<std::string>(random_, {"1", "3", "5", "3x1", "1x3"}),
                       one_in(3) ? " dilation 2" : "");
  return fmt::format("conv {} {}{}", size(33), pair(1, 4), conv_options());
}

std::string LayerMaker::conv1d(const Shape& shape) {
  const int64_t groups =
      one_in(3) && shape.rank() > 0 ? divisor(std::max<int64_t>(1, shape[0])) : 1;
  const std::string head = fmt::format("conv1d {}", groups * size(groups > 1 ? 5 : 33));
  const std::string tail =
      fmt::format("{}{}{}", one_in(4) ? " dilation 2" : "", one_in(3) ? " no_bias" : "",
                  groups > 1 ? fmt::format(" groups {}", groups) : "");
  if (one_in(3)) return fmt::format("{} {} padding same{}", head, one_in(2) ? 3 : 5, tail);
  return fmt::format("{} {}{}{}{}", head, between(random_, 1, 4),
                     one_in(3) ? fmt::format(" stride {}", between(random_, 1, 3)) : "",
                     one_in(2) ? fmt::format(" padding {}", between(random_, 0, 3)) : "", tail);
}

// The input, if it has a number for each position, serves as the mask.
std::string LayerMaker::recurrent(const Shape& shape) {
  const bool maskable = shape.rank() == 2 && inputs_[0] == Shape{shape[0]};
  const std::string layer = fmt::format(
      "{} {}{}{}{}{}{}{}", one_in(2) ? "lstm" : "gru", size(33), one_in(3) ? " layers 2" : "",
      one_in(3) ? " bidirectional" : "", one_in(3) ? " last" : "", one_in(3) ? " no_bias" : "",
      one_in(4) ? " dropout 0.3" : "", maskable && one_in(2) ? " mask x" : "");
  return one_in(4) ? fmt::format("bidirectional {{ {} }}", layer) : layer;
}

std::string LayerMaker::reshaped(const Shape& shape) {
  int64_t left = shape.elements();
  std::vector<std::string> extents;
  for (int64_t n = between(random_, 1, 4); n > 1; --n) {
    const int64_t extent = divisor(std::max<int64_t>(1, left));
    extents.push_back(std::to_string(extent));
    left /= std::max<int64_t>(1, extent);
  }
  extents.push_back(one_in(3) ? "-1" : std::to_string(left));
  return join(extents, "x");
}

std::string LayerMaker::preserving(const Shape& shape, bool with_states) {
  const int64_t width = shape.rank() > 0 ? shape.back() : 1;
  if (shape.rank() == 3 && one_in(2)) {
    const std::string groups =
        one_in(3) ? fmt::format(" groups {}", divisor(shape[0])) : std::string();
    return fmt::format("conv {} {} padding same{}", shape[0],
                       pick<std::string>(random_, {"1", "3", "3x1"}), groups);
  }
  switch (random_.below(with_states ? 7 : 6)) {
    case 0:
      return activation();
    case 1:
      return "layer_norm";
    case 2:
      return fmt::format("feed_forward {}", size(17));
    case 3:
      return one_in(2) ? "dropout" : "rms_norm";
    case 6:
      return "batch_norm";
    default:
      return fmt::format("dense {}", width);
  }
}

std::string LayerMaker::block(const Shape& shape, int depth) {
  std::vector<std::string> layers;
  for (int64_t n = between(random_, 1, 3); n > 0; --n)
    for (std::string& layer : propose(shape, depth + 1)) layers.push_back(std::move(layer));
  return fmt::format("{{ {} }}", join(layers, " | "));
}

std::string LayerMaker::residual(const Shape& shape, int depth) {
  const char* end = one_in(2) ? " no_relu" : "";
  if (one_in(4))  // anything
    return fmt::format("residual {}{}{}", block(shape, depth),
                       one_in(3) ? " shortcut " + block(shape, depth) : "", end);
  if (one_in(3)) {  // both branches change the shape
    const int64_t wide = size(33), stride = between(random_, 1, 2);
    if (shape.rank() == 3)
      return fmt::format(
          "residual {{ conv {0} 3 padding 1 stride {1}{2} }} shortcut {{ conv {0} 1 stride {1}{3} "
          "}}{4}",
          wide, stride, one_in(2) ? " | batch_norm" : "", one_in(2) ? " | batch_norm" : "", end);
    return fmt::format("residual {{ dense {0} | {1} }} shortcut {{ dense {0} }}{2}", wide,
                       activation(), end);
  }
  std::vector<std::string> body;
  for (int64_t n = between(random_, 1, 3); n > 0; --n)
    body.push_back(depth < 3 && one_in(4) ? residual(shape, depth + 1) : preserving(shape, true));
  return fmt::format("residual {{ {} }}{}", join(body, " | "), end);
}

std::string LayerMaker::combination(const std::string& kept) {
  switch (random_.below(5)) {
    case 0:
      return "subtract " + kept;
    case 1:
      return "multiply " + kept;
    case 2:
      return fmt::format("concat {}{}", kept,
                         one_in(2) ? fmt::format(" axis {}", one_in(2) ? -1 : 2) : "");
    default:
      return "add " + kept;
  }
}

std::vector<std::string> LayerMaker::skip(const Shape& shape) {
  const std::string kept = fresh("k");
  std::vector<std::string> layers = {"as " + kept};
  for (int64_t n = between(random_, 1, 2); n > 0; --n) layers.push_back(preserving(shape, true));
  layers.push_back(combination(kept));
  return layers;
}

// Two ways from one value, both of which matter.
std::vector<std::string> LayerMaker::branches(const Shape& shape) {
  const std::string from = fresh("k"), left = fresh("k");
  return {"as " + from,   preserving(shape, true),  "as " + left,
          "from " + from, preserving(shape, false), combination(left)};
}

std::vector<std::string> LayerMaker::used_twice(const Shape& shape) {
  const std::string name = fresh("n");
  std::string layer = preserving(shape, false);
  if (one_in(3)) layer = fmt::format("sequential {{ {} | {} }}", layer, preserving(shape, false));
  std::vector<std::string> layers = {name + ": " + layer};
  if (one_in(2)) layers.push_back(activation());
  layers.push_back("same " + name);
  return layers;
}

std::vector<std::string> LayerMaker::other_input(const Shape& shape) {
  const size_t index = 1 + random_.below(inputs_.size() - 1);
  const std::string input = fmt::format("x{}", index + 1);
  if (tokens_ == 0 && inputs_[index] == shape) return {combination(input)};
  if (tokens_ == 0 && inputs_[index].rank() == shape.rank() && one_in(3))
    return {fmt::format("concat {} axis {}", input, one_in(2) ? -1 : 1)};
  const std::string kept = fresh("k"), other = fresh("k");
  const std::string dense = fmt::format("dense {}", size(17));
  std::vector<std::string> layers = {"as " + kept, "from " + input};
  if (tokens_ > 0) layers.push_back(fmt::format("embedding {} {}", tokens_, size(9)));
  for (const std::string& each : {std::string("flatten"), dense, "as " + other, "from " + kept,
                                  std::string("flatten"), dense, combination(other)})
    layers.push_back(each);
  return layers;
}

std::vector<std::string> LayerMaker::propose(const Shape& shape, int depth) {
  if (inputs_.size() > 1 && depth == 0 && one_in(3)) return other_input(shape);
  switch (random_.below(25)) {
    case 0:
      return skip(shape);
    case 1:
      return branches(shape);
    case 2:
      return used_twice(shape);
    case 3:
      return one_in(2) ? std::vector<std::string>{"output " + fresh("o")}
                       : std::vector<std::string>{fresh("n") + ": " + layer(shape, depth)};
    default:
      return {layer(shape, depth)};
  }
}

std::string LayerMaker::layer(const Shape& shape, int depth) {
  const int64_t width = shape.rank() > 0 ? shape.back() : 1;
  if (shape.rank() == 3 && one_in(3)) return image_layer(shape);
  switch (random_.below(24)) {
    case 0:
    case 1:
    case 2:
      return fmt::format("dense {}{}", size(65), one_in(4) ? " no_bias" : "");
    case 3:
    case 4:
    case 5:
      return activation();
    case 6:
      return one_in(2) ? "leaky_relu" : fmt::format("leaky_relu {}", random_.uniform(-0.5f, 0.9f));
    case 7:
    case 8:
      return one_in(2) ? "batch_norm"
                       : fmt::format("batch_norm epsilon {} momentum {}",
                                     pick<double>(random_, {1e-5, 1e-3, 0.1}),
                                     pick<double>(random_, {0, 0.1, 0.5, 1}));
    case 9:
      return one_in(2) ? "layer_norm" : "layer_norm epsilon 0.01";
    case 10:
      return one_in(2) ? "rms_norm" : "rms_norm epsilon 0.01";
    case 11:
      return one_in(4) ? "dropout"
                       : fmt::format("dropout {}", pick<double>(random_, {0, 0.1, 0.5, 0.9}));
    case 12:
      return fmt::format("attention {}{}{}{}{}", divisor(width), one_in(2) ? " causal" : "",
                         one_in(3) ? " rotary" : "", one_in(3) ? " no_bias" : "",
                         one_in(3) ? " dropout 0.3" : "");
    case 13:
      return fmt::format("feed_forward {}{}", size(33),
                         pick<std::string>(random_, {"", " gelu", " gelu_tanh", " relu", " silu"}));
    case 14:
      return fmt::format("swiglu {}", size(33));
    case 15:
      return fmt::format("learned_positions {}",
                         shape.rank() > 0 ? shape[0] + between(random_, 0, 2) : 1);
    case 16:
      return one_in(2) ? "sinusoidal_positions" : "class_token";
    case 17:
      return fmt::format("take {}", between(random_, 0, 2));
    case 18:
      return "flatten";
    case 19:
      return "reshape " + reshaped(shape);
    case 20:
      return depth >= 3 ? "relu" : residual(shape, depth);
    case 21:
    case 22:
      return recurrent(shape);
    case 23:
      return conv1d(shape);
    default:
      return depth >= 3 ? "tanh" : "sequential " + block(shape, depth);
  }
}

std::string LayerMaker::image_layer(const Shape& shape) {
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return conv(shape);
    case 4: {
      const int64_t groups = one_in(3) ? divisor(shape[0]) : 1;
      return fmt::format("conv_transpose {} {}{}{}{}", groups * size(groups > 1 ? 3 : 17),
                         pair(1, 4), conv_options(),
                         one_in(2) ? " output_padding " + pair(0, 2) : "",
                         groups > 1 ? fmt::format(" groups {}", groups) : "");
    }
    case 5:
      return fmt::format("{} {}{}", one_in(2) ? "max_pool" : "average_pool", pair(1, 3),
                         pool_options());
    case 6:
      return fmt::format("{} {}", one_in(2) ? "adaptive_average_pool" : "adaptive_max_pool",
                         pair(1, 4));
    default:
      if (one_in(3))
        return fmt::format("mask_patches {}{}", divisor(std::gcd(shape[1], shape[2])),
                           one_in(2) ? " 0.5" : "");
      return fmt::format("patches {} {}", size(17), between(random_, 1, 4));
  }
}

}  // namespace artel::model_fuzz
