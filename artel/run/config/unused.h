// Settings that a run does not use.
#pragma once

#include <string>
#include <vector>

#include "artel/run/config/setup.h"

namespace artel {

// A message for each key that was set but has no effect on a run with this number of workers.
std::vector<std::string> unused_settings(const RunConfig& config, int workers);
// The same for keys that depend on data and network.
std::vector<std::string> unused_settings(const RunConfig& config, const RunData& data,
                                         const Parameters& parameters);

}  // namespace artel
