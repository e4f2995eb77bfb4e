// Runs a command on another machine.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "artel/base/text.h"

namespace artel::cli {

// The words before the host. The variable lets tests and unusual clusters replace ssh. ssh notices
// a dead machine or wire within ten seconds. Tolerates cuts of `patience` seconds if that is longer
// than four seconds: ssh waits twice as long, because TCP doubles its pauses during a cut.
inline std::vector<std::string> remote_shell(double patience = 0) {
  constexpr int kInterval = 2, kLeastCount = 4;
  const int count = std::max(kLeastCount, static_cast<int>(2 * patience / kInterval) + 2);
  const char* given = std::getenv("ARTEL_SSH");
  return split(given ? given
                     : fmt::format("ssh -o BatchMode=yes -o ConnectTimeout=4 -o "
                                   "ServerAliveInterval={} -o ServerAliveCountMax={}",
                                   kInterval, count),
               ' ');
}

}  // namespace artel::cli
