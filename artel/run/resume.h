// What a run that is resumed may change.
#pragma once

#include "artel/run/config.h"
#include "artel/run/run_folder.h"

namespace artel {

// Compares what decides the result (the data, the network, the optimizer, the batch size, the seed
// ...) with what the run in the folder was trained with so far. What has changed is an Error, or,
// if `forced`, a warning. `fingerprint` is that of the data.
void check_changes(const RunFolder& folder, const RunConfig& config, const std::string& fingerprint,
                   bool forced);

}  // namespace artel
