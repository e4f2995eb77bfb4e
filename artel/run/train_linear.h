// Training of sparse linear models: the strategy "ddpg".
#pragma once

#include "artel/cluster/cluster.h"
#include "artel/run/config.h"
#include "artel/run/run_folder.h"

namespace artel {

// The libsvm files of a run, fetched first if they are of the catalogue; the second may be empty.
// Throws for data that is not sparse.
std::pair<std::filesystem::path, std::filesystem::path> sparse_files(const RunConfig& config);

// What a worker does. Worker 0 reports to people and writes to the folder, or goes on from the
// newest checkpoint there; the others, whose folder is null, are silent.
void train_linear(const RunConfig& config, Cluster& cluster, const RunFolder* folder,
                  bool resume = false);

}  // namespace artel
