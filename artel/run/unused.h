// Settings that a run does not use.
#pragma once

#include <string>
#include <vector>

#include "artel/run/setup.h"

namespace artel {

// What to say of each key that was set but has no effect on a run of so many workers.
std::vector<std::string> unused_settings(const RunConfig& config, int workers);
// The same for what depends on the data and the network.
std::vector<std::string> unused_settings(const RunConfig& config, const RunData& data,
                                         const Parameters& parameters);

}  // namespace artel
