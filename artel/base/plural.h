// Numbers of things, as people read them.
#pragma once

#include <string>
#include <string_view>

#include "artel/base/text.h"

namespace artel {

// "1 epoch", "2,000 epochs".
inline std::string counted(int64_t n, std::string_view noun) {
  return format_count(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

}  // namespace artel
