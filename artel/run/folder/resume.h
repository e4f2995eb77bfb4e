// Checks the changes of a resumed run.
#pragma once

#include <string>
#include <vector>

#include "artel/run/config/config.h"
#include "artel/run/folder/run_folder.h"

namespace artel {

// The settings that decide the result, as "train.seed = 1", without paths of data.
std::vector<std::string> deciding_settings(const RunConfig& config);

// Compares the settings that determine the result (data, network, optimizer, batch size, seed, ...)
// with those of the run in the folder. Changes are an Error or, if `forced`, a warning.
// `fingerprint` is that of the data.
void check_changes(const RunFolder& folder, const RunConfig& config, const std::string& fingerprint,
                   bool forced);

}  // namespace artel
