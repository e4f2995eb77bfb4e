// Identifies ranks that could share memory.
#pragma once

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace artel::comm {

// Equal for processes that run on one kernel and can reach each other's local sockets (network
// namespaces separate them); empty if this cannot be determined.
inline std::string machine_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 64> network{};
  const ssize_t length = readlink("/proc/self/ns/net", network.data(), network.size());
  return boot.empty() || length <= 0 ? "" : boot + " " + std::string(network.data(), length);
}

}  // namespace artel::comm
