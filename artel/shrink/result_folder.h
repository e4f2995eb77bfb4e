// The new folder of a smaller network.
#pragma once

#include <string>

#include "artel/run/folder/run_folder.h"
#include "artel/tensor/named_tensor.h"

namespace artel::shrink {

// Throws if the folder exists.
void check_free(const std::string& folder);
// Throws unless `source` is the folder of a run, which is returned, and `folder` does not exist.
RunFolder check_result(const std::string& source, const std::string& folder);

// Writes a run with the data layout of the run `source` to the new `folder`. `config` is its
// configuration as TOML.
void save_result(const std::string& source, const std::string& folder, const std::string& config,
                 NamedTensors weights);

}  // namespace artel::shrink
