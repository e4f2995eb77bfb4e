#include "artel/nn/parse_layers.h"

#include <functional>
#include <map>

#include "artel/base/registry.h"
#include "artel/nn/layers.h"
#include "artel/nn/named_values.h"
#include "artel/nn/recurrent.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

// Together these keep every weight below 2^60 elements, so that no count of bytes overflows.
constexpr int64_t kMostUnits = 1 << 20;
constexpr int64_t kMostKernel = 1 << 10;
constexpr size_t kMostLayers = 1 << 16;
constexpr int kMostDepth = 16;
constexpr int64_t kMostAxes = 8;
constexpr int64_t kMostRecurrent = 256;

constexpr std::string_view kSame = "same";
constexpr const char* kSameSyntax = "same NAME";
constexpr const char* kRecurrentSyntax =
    "UNITS [layers N] [bidirectional] [last] [no_bias] [dropout PROBABILITY] [mask NAME]";

// Layers beside each other, of which some have names.
struct Siblings {
  std::vector<Layer> layers;
  std::map<std::string, Layer> named;
};

void parse_layer(LayerWords& words, int depth, Siblings& siblings);

// { layer | layer | ... }
std::vector<Layer> parse_braces(LayerWords& words, int depth) {
  if (depth >= kMostDepth) words.reject("got blocks nested deeper than {}", kMostDepth);
  words.expect("{");
  Siblings siblings;
  do {
    parse_layer(words, depth + 1, siblings);
  } while (words.accept("|"));
  words.expect("}");
  return std::move(siblings.layers);
}

Layer parse_block(LayerWords& words, int depth) { return sequential(parse_braces(words, depth)); }

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

// A number for each spatial axis.
void parse_extent(LayerWords& words, const char* what, int64_t least, int64_t& extent) {
  extent = words.integer(what, least, kMostKernel);
}
void parse_extent(LayerWords& words, const char* what, int64_t least,
                  std::array<int64_t, 2>& extents) {
  extents = words.pair(what, least, kMostKernel);
}

// Of convolutions over any number of axes.
bool parse_conv_option(LayerWords& words, auto& options) {
  if (words.accept("stride"))
    parse_extent(words, "stride", 1, options.stride);
  else if (words.accept("padding"))
    parse_extent(words, "padding", 0, options.padding);
  else if (words.accept("dilation"))
    parse_extent(words, "dilation", 1, options.dilation);
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

Layer parse_conv1d(LayerWords& words, int) {
  const int64_t channels = words.integer("channels", 1, kMostUnits);
  const int64_t kernel = words.integer("kernel", 1, kMostKernel);
  Conv1dLayerOptions options;
  bool same = false;
  parse_options(words, "conv1d",
                [&] {
                  if (words.accept("padding", "same")) return same = true;
                  return parse_conv_option(words, options);
                },
                {"stride", "padding", "dilation", "groups", "no_bias"});
  if (same) options.padding = same_padding(words, kernel, options.dilation);
  return conv1d(channels, kernel, options);
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

Layer parse_mask_patches(LayerWords& words, int) {
  const int64_t size = words.integer("size", 1, 4096);
  return mask_patches(size, words.more() ? words.number("share", 0, 0.99) : 0.75);
}

Layer parse_embedding(LayerWords& words, int) {
  const int64_t rows = words.integer("rows", 1, int64_t{1} << 30);
  return embedding(rows, words.integer("width", 1, kMostUnits));
}

Layer parse_embedding_bag(LayerWords& words, int) {
  const int64_t rows = words.integer("rows", 1, int64_t{1} << 30);
  const int64_t width = words.integer("width", 1, kMostUnits);
  EmbeddingBagOptions options;
  parse_options(words, "embedding_bag",
                [&] {
                  if (words.accept("sum"))
                    options.sum = true;
                  else if (words.accept("ignore_padding"))
                    options.ignore_padding = true;
                  else
                    return false;
                  return true;
                },
                {"sum", "ignore_padding"});
  return embedding_bag(rows, width, options);
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

template <Layer (*make)(int64_t, RecurrentOptions)>
Layer parse_recurrent(LayerWords& words, int) {
  const int64_t units = words.integer("units", 1, kMostUnits / 4);
  RecurrentOptions options;
  parse_options(words, "a recurrent layer",
                [&] {
                  if (words.accept("layers"))
                    options.layers = words.integer("layers", 1, kMostRecurrent);
                  else if (words.accept("bidirectional"))
                    options.bidirectional = true;
                  else if (words.accept("last"))
                    options.last = true;
                  else if (words.accept("no_bias"))
                    options.bias = false;
                  else if (words.accept("dropout"))
                    options.dropout = words.number("probability", 0, 0.99);
                  else if (words.accept("mask"))
                    options.mask = words.name("the name of a value");
                  else
                    return false;
                  return true;
                },
                {"layers", "bidirectional", "last", "no_bias", "dropout", "mask"});
  return make(units, options);
}

// Around one layer it adds nothing to the names of parameters, like the option of that layer.
Layer parse_bidirectional(LayerWords& words, int depth) {
  std::vector<Layer> layers = parse_braces(words, depth);
  return bidirectional(layers.size() == 1 ? std::move(layers[0]) : sequential(std::move(layers)));
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

template <Layer (*make)(std::string)>
Layer parse_kept(LayerWords& words, int) {
  return make(words.name("the name of a value"));
}

Layer parse_concat(LayerWords& words, int) {
  std::string name = words.name("the name of a value");
  return concat_kept(std::move(name),
                     words.accept("axis") ? words.integer("axis", -kMostAxes, kMostAxes) : 1);
}

struct Kind {
  std::string arguments;  // as people write them
  std::function<Layer(LayerWords&, int depth)> parse;
};

Registry<Kind>::Entries make_kinds() {
  struct Named {
    std::string name, arguments;
    std::function<Layer(LayerWords&, int depth)> parse;
  };
  std::vector<Named> kinds = {
      {"dense", "UNITS [no_bias]", parse_dense},
      {"conv", "CHANNELS KERNEL [stride S] [padding P|same] [dilation D] [groups G] [no_bias]",
       parse_conv},
      {"conv1d", "CHANNELS KERNEL [stride S] [padding P|same] [dilation D] [groups G] [no_bias]",
       parse_conv1d},
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
      {"mask_patches", "SIZE [SHARE]", parse_mask_patches},
      {"embedding", "ROWS WIDTH", parse_embedding},
      {"embedding_bag", "ROWS WIDTH [sum] [ignore_padding]", parse_embedding_bag},
      {"attention", "HEADS [causal] [rotary] [no_bias] [dropout PROBABILITY]", parse_attention},
      {"feed_forward", "HIDDEN [gelu|gelu_tanh|relu|silu]", parse_feed_forward},
      {"swiglu", "HIDDEN",
       [](LayerWords& words, int) { return swiglu(words.integer("hidden units", 1, kMostUnits)); }},
      {"lstm", kRecurrentSyntax, parse_recurrent<lstm>},
      {"gru", kRecurrentSyntax, parse_recurrent<gru>},
      {"bidirectional", "{ LAYER | ... }", parse_bidirectional},
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
      {"as", "NAME", parse_kept<keep_as>},
      {"from", "NAME", parse_kept<take_kept>},
      {"add", "NAME", parse_kept<add_kept>},
      {"subtract", "NAME", parse_kept<subtract_kept>},
      {"multiply", "NAME", parse_kept<multiply_kept>},
      {"concat", "NAME [axis AXIS]", parse_concat},
      {"output", "NAME", parse_kept<output>},
      {"leaky_relu", "[SLOPE]", parse_leaky_relu}};
  for (const char* name : {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus",
                           "softmax", "log_softmax"})
    kinds.push_back({name, "", [name](LayerWords&, int) { return activation(name); }});
  Registry<Kind>::Entries entries;
  for (Named& kind : kinds)
    entries.emplace_back(kind.name, Kind{std::move(kind.arguments), std::move(kind.parse)});
  return entries;
}

Registry<Kind>& all_kinds() {
  static Registry<Kind> kinds("layer", make_kinds(), Names::words);
  return kinds;
}

std::string syntax_of(const std::string& name, const Kind& kind) {
  return kind.arguments.empty() ? name : name + " " + kind.arguments;
}

// "same NAME": a layer beside this one once more, with the same parameters.
Layer parse_same(LayerWords& words, const Siblings& siblings) {
  const std::string name = words.name("the name of a layer");
  const auto found = siblings.named.find(name);
  if (found != siblings.named.end()) return shared(found->second);
  std::vector<std::string> known;
  for (const auto& [sibling, layer] : siblings.named) known.push_back(sibling);
  words.reject("unknown layer '{}'{}; layers with names before it: {}", name,
               did_you_mean(name, known), known.empty() ? "none" : join(known, ", "));
}

void parse_layer(LayerWords& words, int depth, Siblings& siblings) {
  const std::string name = words.label();
  const std::string kind_name = words.take("a layer such as 'dense 10'");
  const bool same = kind_name == kSame;
  const Kind* const kind = same ? nullptr : all_kinds().find(kind_name);
  if (!same && !kind) words.reject("{}", all_kinds().unknown(kind_name));
  Layer layer = same ? parse_same(words, siblings) : kind->parse(words, depth);
  if (words.more())
    words.reject("got an extra '{}', expected: {}", words.take("a word"),
                 same ? kSameSyntax : syntax_of(kind_name, *kind));
  if (!name.empty()) {
    if (same)
      words.reject("got the name '{}', expected none: it has the name of the layer that it repeats",
                   name);
    layer = named(name, layer);
    siblings.named.emplace(name, layer);
  }
  siblings.layers.push_back(std::move(layer));
}

}  // namespace

Layer parse_layers(const std::vector<std::string>& lines) {
  require(!lines.empty() && lines.size() <= kMostLayers, ErrorKind::invalid_argument,
          "[layers] got {} layers, expected 1 to {}", lines.size(), kMostLayers);
  Siblings siblings;
  for (size_t i = 0; i < lines.size(); ++i) {
    LayerWords words(i, lines[i]);
    parse_layer(words, 0, siblings);
    if (!words.at_end()) words.reject("got '{}' without a '{{'", words.take("a word"));
  }
  return sequential(std::move(siblings.layers));
}

std::vector<std::string> layer_syntax() {
  std::vector<std::string> lines;
  for (const std::string& name : all_kinds().names())
    lines.push_back(syntax_of(name, all_kinds().at(name)));
  lines.emplace_back(kSameSyntax);
  return lines;
}

void register_layer(const std::string& name, const std::string& arguments,
                    std::function<Layer(LayerWords&)> parse) {
  require_function("layer", name, parse);
  require(name != kSame, ErrorKind::invalid_argument,
          "layer '{}': the word is reserved for repeating a layer; try another name", name);
  all_kinds().add(name, {arguments, [parse = std::move(parse)](LayerWords& words, int) {
                           return parse(words);
                         }});
}

}  // namespace artel::nn
