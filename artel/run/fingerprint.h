// What tells whether the data of a run is still what it was trained on.
#pragma once

#include <memory>
#include <string>

#include "artel/data/file_digests.h"
#include "artel/run/setup.h"

namespace artel {

// Of the samples of all parts (their numbers, and a few that stand for all) and of the files at
// data.path and data.test_path.
std::string fingerprint_of(const RunConfig& config, const RunData& data);

// Digests of all files that the data of this configuration comes from.
std::shared_ptr<data::FileDigests> file_digests(const RunConfig& config);

// Whether two fingerprints may be of the same data: runs of old versions know only samples, or
// nothing.
bool same_data(const std::string& before, const std::string& now);

}  // namespace artel
