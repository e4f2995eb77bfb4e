// The token tables of a network.
#pragma once

#include <optional>
#include <string>

#include "artel/nn/model.h"

namespace artel::nn {

struct TokenTable {
  std::string name;  // of the parameter
  int64_t rows, width;
};

// The smallest table indexed directly by the tokens of a sample; empty if the network has none.
std::optional<TokenTable> smallest_token_table(const Model& model, const TensorType& sample);

}  // namespace artel::nn
