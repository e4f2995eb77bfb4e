#include "artel/nn/parse_layers.h"

#include <functional>

#include "artel/base/text.h"
#include "artel/nn/layer_words.h"
#include "artel/nn/layers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

// Together these keep every weight below 2^60 elements, so that no count of bytes overflows.
constexpr int64_t kMostUnits = 1 << 20;
constexpr int64_t kMostKernel = 1 << 10;
constexpr size_t kMostLayers = 1 << 16;
constexpr int kMostDepth = 16;

Layer parse_layer(LayerWords& words, int depth);

// { layer | layer | ... }
Layer parse_block(LayerWords& words, int depth) {
  if (depth >= kMostDepth) words.reject("got blocks nested deeper than {}", kMostDepth);
  words.expect("{");
  std::vector<Layer> layers;
  do {
    layers.push_back(parse_layer(words, depth + 1));
  } while (words.accept("|"));
  words.expect("}");
  return sequential(std::move(layers));
}

// Tries to take one option; says whether there was one.
using Option = std::function<bool()>;

void parse_options(LayerWords& words, std::string_view kind, const Option& option,
                   const std::vector<std::string>& known) {
  while (words.more())
    if (!option()) words.reject_option(kind, known);
}

Layer parse_dense(LayerWords& words, int) {
  const int64_t units = words.integer("units", 1, kMostUnits);
  return dense(units, {.bias = !words.accept("no_bias")});
}

// Padding with which a convolution of stride 1 keeps the extents.
int64_t same_padding(const LayerWords& words, int64_t kernel, int64_t dilation) {
  const int64_t reach = dilation * (kernel - 1);
  if (reach % 2 != 0) words.reject("padding same: got a kernel of {}, expected an odd one", kernel);
  return reach / 2;
}

bool parse_conv_option(LayerWords& words, ConvLayerOptions& options) {
  if (words.accept("stride"))
    options.stride = words.pair("stride", 1, kMostKernel);
  else if (words.accept("padding"))
    options.padding = words.pair("padding", 0, kMostKernel);
  else if (words.accept("dilation"))
    options.dilation = words.pair("dilation", 1, kMostKernel);
  else if (words.accept("groups"))
    options.groups = words.integer("groups", 1, kMostUnits);
  else if (words.accept("no_bias"))
    options.bias = false;
  else
    return false;
  return true;
}

Layer parse_conv(LayerWords& words, int) {
  const int64_t channels = words.integer("channels", 1, kMostUnits);
  const std::array<int64_t, 2> kernel = words.pair("kernel", 1, kMostKernel);
  ConvLayerOptions options;
  bool same = false;
  parse_options(words, "conv",
                [&] {
                  if (words.accept("padding", "same")) return same = true;
                  return parse_conv_option(words, options);
                },
                {"stride", "padding", "dilation", "groups", "no_bias"});
  if (same)
    for (size_t i = 0; i < 2; ++i)
      options.padding[i] = same_padding(words, kernel[i], options.dilation[i]);
  return conv(channels, kernel, options);
}

Layer parse_conv_transpose(LayerWords& words, int) {
  const int64_t channels = words.integer("channels", 1, kMostUnits);
  const std::array<int64_t, 2> kernel = words.pair("kernel", 1, kMostKernel);
  ConvLayerOptions options;
  parse_options(words, "conv_transpose",
                [&] {
                  if (!words.accept("output_padding")) return parse_conv_option(words, options);
                  options.output_padding = words.pair("output_padding", 0, kMostKernel);
                  return true;
                },
                {"stride", "padding", "dilation", "groups", "output_padding", "no_bias"});
  return conv_transpose(channels, kernel, options);
}

using Pool = Layer (*)(std::array<int64_t, 2>, PoolLayerOptions);

template <Pool pool>
Layer parse_pool(LayerWords& words, int) {
  const std::array<int64_t, 2> kernel = words.pair("kernel", 1, kMostKernel);
  PoolLayerOptions options;
  parse_options(words, "pooling",
                [&] {
                  if (words.accept("stride"))
                    options.stride = words.pair("stride", 1, kMostKernel);
                  else if (words.accept("padding"))
                    options.padding = words.pair("padding", 0, kMostKernel);
                  else
                    return false;
                  return true;
                },
                {"stride", "padding"});
  return pool(kernel, options);
}

template <Layer (*pool)(int64_t, int64_t)>
Layer parse_adaptive_pool(LayerWords& words, int) {
  const std::array<int64_t, 2> size = words.pair("size", 1, kMostKernel);
  return pool(size[0], size[1]);
}

Layer parse_batch_norm(LayerWords& words, int) {
  BatchNormLayerOptions options;
  parse_options(words, "batch_norm",
                [&] {
                  if (words.accept("epsilon"))
                    options.epsilon = words.number("epsilon", 0, 1);
                  else if (words.accept("momentum"))
                    options.momentum = words.number("momentum", 0, 1);
                  else
                    return false;
                  return true;
                },
                {"epsilon", "momentum"});
  return batch_norm(options);
}

template <Layer (*norm)(double)>
Layer parse_row_norm(LayerWords& words, int) {
  return norm(words.accept("epsilon") ? words.number("epsilon", 0, 1) : 1e-5);
}

Layer parse_dropout(LayerWords& words, int) {
  return dropout(words.more() ? words.number("probability", 0, 0.99) : 0.5);
}

Layer parse_embedding(LayerWords& words, int) {
  const int64_t rows = words.integer("rows", 1, int64_t{1} << 30);
  return embedding(rows, words.integer("width", 1, kMostUnits));
}

Layer parse_leaky_relu(LayerWords& words, int) {
  return leaky_relu(words.more() ? words.number("slope", -1, 1) : 0.01);
}

Layer parse_residual(LayerWords& words, int depth) {
  const Layer body = named("body", parse_block(words, depth));
  std::optional<Layer> shortcut;
  if (words.accept("shortcut")) shortcut = named("shortcut", parse_block(words, depth));
  return residual(body, shortcut, !words.accept("no_relu"));
}

Layer parse_attention(LayerWords& words, int) {
  AttentionLayerOptions options{.heads = words.integer("heads", 1, kMostUnits)};
  parse_options(words, "attention",
                [&] {
                  if (words.accept("causal"))
                    options.causal = true;
                  else if (words.accept("rotary"))
                    options.rotary = true;
                  else if (words.accept("no_bias"))
                    options.bias = false;
                  else if (words.accept("dropout"))
                    options.dropout = words.number("probability", 0, 0.99);
                  else
                    return false;
                  return true;
                },
                {"causal", "rotary", "no_bias", "dropout"});
  return self_attention(options);
}

Layer parse_feed_forward(LayerWords& words, int) {
  const int64_t hidden = words.integer("hidden units", 1, kMostUnits);
  for (const char* activation : {"gelu", "gelu_tanh", "relu", "silu"})
    if (words.accept(activation)) return feed_forward(hidden, activation);
  return feed_forward(hidden);
}

Layer parse_patches(LayerWords& words, int) {
  const int64_t width = words.integer("width", 1, kMostUnits);
  return patch_embedding(width, words.integer("side", 1, kMostKernel));
}

Layer parse_learned_positions(LayerWords& words, int) {
  const int64_t positions = words.integer("positions", 1, kMostUnits);
  return {"learned_positions", [=](Build& build, Value x) {
            return add_learned_positions(build, x, "weight", positions);
          }};
}

Layer parse_take(LayerWords& words, int) {
  const int64_t index = words.integer("position", 0, kMostUnits);
  return {"take", [=](Build&, Value x) { return take_position(x, index); }};
}

struct Kind {
  std::string name;
  std::string arguments;  // as people write them
  std::function<Layer(LayerWords&, int depth)> parse;
};

std::vector<Kind> make_kinds() {
  std::vector<Kind> kinds = {
      {"dense", "UNITS [no_bias]", parse_dense},
      {"conv", "CHANNELS KERNEL [stride S] [padding P|same] [dilation D] [groups G] [no_bias]",
       parse_conv},
      {"conv_transpose",
       "CHANNELS KERNEL [stride S] [padding P] [dilation D] [groups G] [output_padding P] "
       "[no_bias]",
       parse_conv_transpose},
      {"max_pool", "KERNEL [stride S] [padding P]", parse_pool<max_pool>},
      {"average_pool", "KERNEL [stride S] [padding P]", parse_pool<average_pool>},
      {"adaptive_average_pool", "SIZE", parse_adaptive_pool<adaptive_average_pool>},
      {"adaptive_max_pool", "SIZE", parse_adaptive_pool<adaptive_max_pool>},
      {"batch_norm", "[epsilon E] [momentum M]", parse_batch_norm},
      {"layer_norm", "[epsilon E]", parse_row_norm<layer_norm>},
      {"rms_norm", "[epsilon E]", parse_row_norm<rms_norm>},
      {"dropout", "[PROBABILITY]", parse_dropout},
      {"embedding", "ROWS WIDTH", parse_embedding},
      {"attention", "HEADS [causal] [rotary] [no_bias] [dropout PROBABILITY]", parse_attention},
      {"feed_forward", "HIDDEN [gelu|gelu_tanh|relu|silu]", parse_feed_forward},
      {"swiglu", "HIDDEN",
       [](LayerWords& words, int) { return swiglu(words.integer("hidden units", 1, kMostUnits)); }},
      {"learned_positions", "POSITIONS", parse_learned_positions},
      {"sinusoidal_positions", "",
       [](LayerWords&, int) {
         return Layer{"sinusoidal_positions", add_sinusoidal_positions};
       }},
      {"patches", "WIDTH SIDE", parse_patches},
      {"class_token", "",
       [](LayerWords&, int) {
         return Layer{"class_token",
                      [](Build& build, Value x) { return prepend_token(build, x, "weight"); }};
       }},
      {"take", "POSITION", parse_take},
      {"flatten", "", [](LayerWords&, int) { return flatten(); }},
      {"reshape", "EXTENTS",
       [](LayerWords& words, int) { return reshape(words.extents("extents", kMostUnits)); }},
      {"residual", "{ LAYER | ... } [shortcut { LAYER | ... }] [no_relu]", parse_residual},
      {"sequential", "{ LAYER | ... }", parse_block},
      {"leaky_relu", "[SLOPE]", parse_leaky_relu}};
  for (const char* name : {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus",
                           "softmax", "log_softmax"})
    kinds.push_back({name, "", [name](LayerWords&, int) { return activation(name); }});
  return kinds;
}

const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = make_kinds();
  return kinds;
}

std::string syntax_of(const Kind& kind) {
  return kind.arguments.empty() ? kind.name : kind.name + " " + kind.arguments;
}

const Kind& find_kind(LayerWords& words) {
  const std::string name = words.take("a layer such as 'dense 10'");
  std::vector<std::string> known;
  for (const Kind& kind : all_kinds()) {
    if (kind.name == name) return kind;
    known.push_back(kind.name);
  }
  words.reject("unknown layer '{}'{}; known: {}", name, did_you_mean(name, known),
               join(known, ", "));
}

Layer parse_layer(LayerWords& words, int depth) {
  const std::string name = words.label();
  const Kind& kind = find_kind(words);
  Layer layer = kind.parse(words, depth);
  if (words.more())
    words.reject("got '{}' too much, expected: {}", words.take("a word"), syntax_of(kind));
  return name.empty() ? layer : named(name, layer);
}

}  // namespace

Layer parse_layers(const std::vector<std::string>& lines) {
  require(!lines.empty() && lines.size() <= kMostLayers, ErrorKind::invalid_argument,
          "[layers] got {} layers, expected 1 to {}", lines.size(), kMostLayers);
  std::vector<Layer> layers;
  for (size_t i = 0; i < lines.size(); ++i) {
    LayerWords words(i, lines[i]);
    layers.push_back(parse_layer(words, 0));
    if (!words.at_end()) words.reject("got '{}' without a '{{'", words.take("a word"));
  }
  return sequential(std::move(layers));
}

std::vector<std::string> layer_syntax() {
  std::vector<std::string> lines;
  for (const Kind& kind : all_kinds()) lines.push_back(syntax_of(kind));
  return lines;
}

}  // namespace artel::nn
