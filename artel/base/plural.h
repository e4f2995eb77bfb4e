// Counts with their nouns, for messages.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "artel/base/text.h"

namespace artel {

// "1 epoch", "2,000 epochs", "3 classes".
inline std::string counted(int64_t n, std::string_view noun) {
  const std::string_view ending = n == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", format_count(n), noun, ending);
}

}  // namespace artel
