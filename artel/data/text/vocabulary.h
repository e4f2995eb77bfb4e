// Vocabularies in JSON. Internal to data/text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace artel::data {

// The keys of an object by their numbers. Throws an Error of kind corrupt, with `where` in front,
// unless the numbers are exactly 0 to n - 1.
std::vector<std::string> numbered_tokens(const nlohmann::json& vocabulary,
                                         const std::string& where);

}  // namespace artel::data
