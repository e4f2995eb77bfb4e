// The tables in which a network looks its tokens up.
#pragma once

#include <optional>
#include <string>

#include "artel/nn/model.h"

namespace artel::nn {

struct TokenTable {
  std::string name;  // of the parameter
  int64_t rows, width;
};

// The smallest table in which the inputs of a sample of tokens are looked up as they are; nothing
// if there is none.
std::optional<TokenTable> smallest_token_table(const Model& model, const TensorType& sample);

}  // namespace artel::nn
