// Trains a network as a configuration describes.
#pragma once

#include "artel/run/folder/run_folder.h"
#include "artel/run/run.h"

namespace artel {

// The result of a worker.
struct TrainedNetwork {
  RunResult result;
  data::SampleLayout layout;
  bool has_all_weights = true;  // false if this process has only a part of the weights
  Parameters weights;  // may share the trainer's memory; empty unless RunOptions::uses_network
};

// The training of one worker. Worker 0, which has claimed a folder, reports and writes there, and
// resumes from its newest checkpoint; the others train silently. A worker that becomes worker 0
// takes over the folder. `learnt`, if given, encodes a table.
TrainedNetwork train_network(const RunConfig& config, Cluster& cluster,
                             std::optional<ClaimedFolder>& folder, const RunOptions& options,
                             const std::shared_ptr<const data::TableEncoder>& learnt);

}  // namespace artel
