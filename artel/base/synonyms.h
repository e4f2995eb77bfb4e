// Names that other frameworks use for things that Artel has.
//
//   artel::synonyms_of("Linear(64)");  // "dense"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artel {

// Our names for a layer, loss, metric, optimizer option, or configuration key of PyTorch, Keras, or
// scikit-learn. Case, underscores, and arguments in parentheses do not matter. Empty if unknown.
std::vector<std::string> synonyms_of(std::string_view name);

}  // namespace artel
