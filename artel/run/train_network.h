// Training of a network as a configuration describes it.
#pragma once

#include "artel/run/run.h"
#include "artel/run/run_folder.h"

namespace artel {

// What a worker has in the end.
struct TrainedNetwork {
  RunResult result;
  data::SampleLayout layout;
  NamedTensors weights;
};

// What a worker does. Worker 0 reports to people and writes to the folder, or goes on from the
// newest checkpoint there; the others, whose folder is null, do the same training in silence.
TrainedNetwork train_network(const RunConfig& config, Cluster& cluster, const RunFolder* folder,
                             const RunOptions& options);

// All parameters and states.
NamedTensors weights_in(const Parameters& parameters);

}  // namespace artel
