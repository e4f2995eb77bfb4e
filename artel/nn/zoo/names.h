// Names of weights in published files, and how they map to those of our models.
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
// Renames tensors to what a network of the zoo expects. Names that the network does not know are
// allowed.
NamedTensors rename_published(const std::string& model, NamedTensors tensors);

// The last layer of a network of the zoo that scores tokens, and the token table that replaces it
// unless the head is untied. Nothing for networks without such a layer.
struct TokenHead {
  std::string weight, table;
};
std::optional<TokenHead> token_head(const std::string& model);

}  // namespace artel::nn
