// Fingerprints of data, to detect changes since a run was trained.
#pragma once

#include <memory>
#include <string>

#include "artel/data/file_digests.h"
#include "artel/run/config/setup.h"

namespace artel {

// The fingerprint of the samples (their number in each part, and a few of them) and of the files at
// data.path and data.test_path.
std::string fingerprint_of(const RunConfig& config, const RunData& data);

// Digests of all data files of this configuration.
std::shared_ptr<data::FileDigests> file_digests(const RunConfig& config);

// True if two fingerprints may belong to the same data. Runs of old versions have only a
// fingerprint of samples, or none.
bool same_data(const std::string& before, const std::string& now);

}  // namespace artel
