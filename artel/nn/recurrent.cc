#include "artel/nn/recurrent.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layer_kinds.h"
#include "artel/nn/layers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

// One layer in one direction.
struct Pass {
  std::string kind;
  int64_t units;
  bool bias;
  bool reverse;
  Value mask;

  Value operator()(Build& build, Value x, const std::string& suffix) const {
    const bool is_lstm = kind == "lstm";
    const int64_t gates = (is_lstm ? 4 : 3) * units;
    const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(units)));
    const auto parameter = [&](const std::string& name, Shape shape) {
      return build.parameter(name + suffix, std::move(shape), uniform(-bound, bound));
    };
    const Value of_input = parameter("weight_ih", {gates, x.shape()[2]});
    const Value of_state = parameter("weight_hh", {gates, units});
    Value input_bias, state_bias;
    if (bias) {
      input_bias = parameter("bias_ih", {gates});
      state_bias = parameter("bias_hh", {gates});
    }
    if (!is_lstm)
      return artel::gru(artel::dense(x, of_input, input_bias), of_state,
                        {.bias = state_bias, .mask = mask, .reverse = reverse});
    // Only the sum of the two biases matters.
    return artel::lstm(artel::dense(x, of_input, bias ? add(input_bias, state_bias) : Value()),
                       of_state, {.mask = mask, .reverse = reverse});
  }
};

Layer recurrent(std::string kind, int64_t units, RecurrentOptions options) {
  return {kind, [=](Build& build, Value x) {
            require(x.shape().rank() == 3, ErrorKind::shape,
                    "[layer '{}'] {}: got input {}, expected [batch, positions, width]; put an "
                    "embedding or a reshape before it",
                    build.graph().scope(), kind, to_string(x.shape()));
            build.require_whole_text(kind);
            const bool both_ways = build.both_ways() || options.bidirectional;
            const Value mask = options.mask.empty() ? Value() : build.kept(options.mask);
            const int64_t last = x.shape()[1] - 1;
            for (int64_t i = 0; i < options.layers; ++i) {
              const bool take = options.last && i + 1 == options.layers;
              if (i > 0) x = dropout(options.dropout)(build, x);
              const auto pass = [&](bool reverse) {
                const std::string suffix = "_l" + std::to_string(i) + (reverse ? "_reverse" : "");
                const Value y = Pass{kind, units, options.bias, reverse, mask}(build, x, suffix);
                return take ? take_position(y, reverse ? 0 : last) : y;
              };
              const Value there = pass(false);
              x = both_ways ? concat({there, pass(true)}, take ? 1 : 2) : there;
            }
            return x;
          }};
}

}  // namespace

Layer lstm(int64_t units, RecurrentOptions options) {
  return recurrent("lstm", units, std::move(options));
}

Layer gru(int64_t units, RecurrentOptions options) {
  return recurrent("gru", units, std::move(options));
}

Layer bidirectional(Layer layer) {
  return {"bidirectional", [layer = std::move(layer)](Build& build, Value x) {
            const Build::BothWays both_ways(build);
            const Value y = layer(build, x);
            require(both_ways.heard(), ErrorKind::invalid_argument,
                    "[layer '{}'] bidirectional: got {}, expected a recurrent layer; try "
                    "bidirectional {{ lstm 32 }}",
                    build.graph().scope(), layer.kind());
            return y;
          }};
}

namespace {

constexpr int64_t kMostRecurrent = 256;
constexpr const char* kRecurrentSyntax =
    "UNITS [layers N] [bidirectional] [last] [no_bias] [dropout PROBABILITY] [mask NAME]";

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

}  // namespace

std::vector<LayerKind> recurrent_layers() {
  return {
      {"lstm", kRecurrentSyntax, parse_recurrent<lstm>},
      {"gru", kRecurrentSyntax, parse_recurrent<gru>},
      {"bidirectional", "{ LAYER | ... }", parse_bidirectional},
  };
}

}  // namespace artel::nn
