// Published networks that are too large for one machine, for `artel plan`.
#pragma once

#include <string>
#include <vector>

namespace artel::cli {

struct LargeModel {
  std::string name;                    // "gpt3"
  std::string base;                    // model of the zoo with the same architecture
  std::string input;                   // shape of a sample
  std::vector<std::string> overrides;  // configuration of the published size
};

// Null for unknown names.
const LargeModel* find_large_model(const std::string& name);
std::vector<std::string> large_model_names();

}  // namespace artel::cli
