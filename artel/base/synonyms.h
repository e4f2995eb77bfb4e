// Maps names of other frameworks to those of Artel.
//
//   artel::synonyms_of("Linear(64)");  // "dense"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace artel {

// Artel's names for a layer, loss, metric, optimizer option, or configuration key of PyTorch,
// Keras, or scikit-learn. Ignores case, underscores, and arguments in parentheses. Empty if
// unknown.
std::vector<std::string> synonyms_of(std::string_view name);

}  // namespace artel
