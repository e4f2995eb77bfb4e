// Runs a command on another machine.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "artel/base/text.h"

namespace artel::cli {

// The words before the host; the variable lets tests and unusual clusters replace ssh. A dead
// machine or wire is noticed within ten seconds. With a `patience` of more than four seconds, a cut
// of that length costs nothing: TCP, which doubles its pauses, may need as long again to recover.
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
