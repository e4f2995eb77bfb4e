// The name of this machine, for messages.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace artel {

inline std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "localhost";
}

}  // namespace artel
