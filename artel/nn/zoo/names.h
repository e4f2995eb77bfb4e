// Names of weights in published files, and their mapping to the names of our models.
//
//   const artel::NamedTensors weights = artel::nn::rename_published(
//       "gpt2", artel::checkpoint::load_weights("gpt2.safetensors"));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/tensor/named_tensor.h"

namespace artel::nn {

// Every occurrence of `published` in a name (only at the start of the name, if it begins with ^)
// becomes `ours`; rules are applied in order.
struct NameRule {
  std::string published, ours;
};
using NameRules = std::vector<NameRule>;

std::string apply_rules(const NameRules& rules, std::string name);

// The rules of a network of the zoo; none if it has none.
NameRules published_names(const std::string& model);
// Renames tensors for a network of the zoo. Unknown names are allowed.
NamedTensors rename_published(const std::string& model, NamedTensors tensors);

// The last layer of a network of the zoo that scores tokens, and the token table that replaces it
// unless the head is untied. Nothing for networks without such a layer.
struct TokenHead {
  std::string weight, table;
};
std::optional<TokenHead> token_head(const std::string& model);

// Ends the name of a language model whose last layer scores classes instead of tokens.
inline constexpr const char* kClassifierSuffix = "_classifier";

// True if a network of the zoo is a language model that continues a text.
bool predicts_next_tokens(const std::string& model);
// True if a network of the zoo tells classes of texts.
bool classifies_texts(const std::string& model);

}  // namespace artel::nn
