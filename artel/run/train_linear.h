// Training of sparse linear models: the strategy "ddpg".
#pragma once

#include <filesystem>
#include <utility>

#include "artel/run/run.h"
#include "artel/run/run_folder.h"

namespace artel {

// Whether the configuration describes such a model, not a network.
bool is_linear(const RunConfig& config);

// The libsvm files of a run, fetched first if they are of the catalogue; the second may be empty.
// Throws for data that is not sparse.
std::pair<std::filesystem::path, std::filesystem::path> sparse_files(const RunConfig& config);

// What a worker does. Worker 0 reports to people and writes to the folder, or goes on from the
// newest checkpoint there; the others, whose folder is null, are silent.
RunResult train_linear(const RunConfig& config, Cluster& cluster, const RunFolder* folder,
                       const RunOptions& options);

}  // namespace artel
