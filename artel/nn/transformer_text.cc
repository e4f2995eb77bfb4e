// The text forms of nn/transformer.h.
#include "artel/graph/op.h"
#include "artel/nn/layer_kinds.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

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
  for (const std::string& activation : activation_names())
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

}  // namespace

std::vector<LayerKind> transformer_layers() {
  return {
      {"attention", "HEADS [causal] [rotary] [no_bias] [dropout PROBABILITY]", parse_attention},
      {"feed_forward", "HIDDEN [ACTIVATION]", parse_feed_forward},
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
  };
}

}  // namespace artel::nn
