// Selects parameters by name prefixes from users: "encoder." selects the whole encoder.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/exec/parameters.h"

namespace artel {

inline bool begins_with_any(std::string_view name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

// Throws, naming the key of the prefixes, unless each of them matches some name.
inline void check_prefixes(std::string_view key, const std::vector<std::string>& prefixes,
                           const Parameters& parameters) {
  const auto& entries = parameters.entries();
  for (const std::string& prefix : prefixes)
    require(std::any_of(entries.begin(), entries.end(),
                        [&](const ParameterEntry& each) { return each.name.starts_with(prefix); }),
            ErrorKind::invalid_argument,
            "{}: no parameter's name begins with '{}'; `artel info` shows the names", key, prefix);
}

}  // namespace artel
