// The text forms of nn/layers.h.
#include <array>

#include "artel/nn/layer_kinds.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

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

// Options of convolutions over any number of axes.
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

Layer parse_block(LayerWords& words, int depth) { return sequential(parse_braces(words, depth)); }

Layer parse_residual(LayerWords& words, int depth) {
  const Layer body = named("body", parse_block(words, depth));
  std::optional<Layer> shortcut;
  if (words.accept("shortcut")) shortcut = named("shortcut", parse_block(words, depth));
  return residual(body, shortcut, !words.accept("no_relu"));
}

}  // namespace

std::vector<LayerKind> basic_layers() {
  return {
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
      {"flatten", "", [](LayerWords&, int) { return flatten(); }},
      {"reshape", "EXTENTS",
       [](LayerWords& words, int) { return reshape(words.extents("extents", kMostUnits)); }},
      {"residual", "{ LAYER | ... } [shortcut { LAYER | ... }] [no_relu]", parse_residual},
      {"sequential", "{ LAYER | ... }", parse_block},
      {"leaky_relu", "[SLOPE]", parse_leaky_relu},
  };
}

}  // namespace artel::nn
