// Trains a network as a configuration describes.
#pragma once

#include "artel/run/run.h"
#include "artel/run/run_folder.h"

namespace artel {

// What a worker has at the end.
struct TrainedNetwork {
  RunResult result;
  data::SampleLayout layout;
  bool whole = true;   // else the folder has all weights, and this process a part of them
  Parameters weights;  // they may share the trainer's memory; none unless RunOptions::uses_network
};

// What a worker does. Worker 0, which has claimed a folder, reports and writes there, or continues
// from the newest checkpoint there; the others do the same training silently. Whoever becomes
// worker 0 because those before it have ended takes the folder over. A table is encoded by what was
// `learnt` of it before, if that is given.
TrainedNetwork train_network(const RunConfig& config, Cluster& cluster,
                             std::optional<ClaimedFolder>& folder, const RunOptions& options,
                             const std::shared_ptr<const data::TableEncoder>& learnt);

}  // namespace artel
