// The layers available in texts (nn/parse_layers.h), by the file that defines them. Internal to nn.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/nn/layer.h"
#include "artel/nn/layer_words.h"

namespace artel::nn {

struct LayerKind {
  std::string name;
  std::string arguments;  // as people write them
  std::function<Layer(LayerWords&, int depth)> parse;
};

std::vector<LayerKind> basic_layers();
std::vector<LayerKind> transformer_layers();
std::vector<LayerKind> recurrent_layers();
std::vector<LayerKind> named_value_layers();

// Together these keep every weight below 2^60 elements, so that no count of bytes overflows.
inline constexpr int64_t kMostUnits = 1 << 20;
inline constexpr int64_t kMostKernel = 1 << 10;

// Parses options until no words are left. `option` tries to parse one and returns true on success.
void parse_options(LayerWords& words, std::string_view kind, const std::function<bool()>& option,
                   const std::vector<std::string>& known);

// { layer | layer | ... }
std::vector<Layer> parse_braces(LayerWords& words, int depth);

}  // namespace artel::nn
