// Runs a command on another machine.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "artel/base/text.h"

namespace artel::cli {

// The words before the host; the variable lets tests and unusual clusters replace ssh. A dead
// machine or wire is noticed within ten seconds.
inline std::vector<std::string> remote_shell() {
  const char* given = std::getenv("ARTEL_SSH");
  return split(given ? given
                     : "ssh -o BatchMode=yes -o ConnectTimeout=4 -o ServerAliveInterval=2 -o "
                       "ServerAliveCountMax=4",
               ' ');
}

}  // namespace artel::cli
