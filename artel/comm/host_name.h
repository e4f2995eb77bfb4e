#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace artel::comm {

inline std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace artel::comm
