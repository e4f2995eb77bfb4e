// Checks the changes of a resumed run.
#pragma once

#include "artel/run/config/config.h"
#include "artel/run/folder/run_folder.h"

namespace artel {

// Compares the settings that determine the result (data, network, optimizer, batch size, seed, ...)
// with those of the run in the folder. Changes are an Error or, if `forced`, a warning.
// `fingerprint` is that of the data.
void check_changes(const RunFolder& folder, const RunConfig& config, const std::string& fingerprint,
                   bool forced);

}  // namespace artel
