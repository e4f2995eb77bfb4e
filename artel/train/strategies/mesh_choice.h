// Which mesh the workers of a fit form if that is left to Artel, and whether what they are to do
// fits into their memory.
#pragma once

#include "artel/cluster/cluster.h"
#include "artel/train/stepper.h"
#include "artel/train/trainer.h"

namespace artel {

// What a fit works on; the stepper has compiled the lanes of its batches.
struct MeshTask {
  const Cluster& cluster;
  Stepper& stepper;
  int64_t batch_size = 0;
};

// A collective call: if the options ask for `cluster.mesh = "auto"`, puts the axes and the sharding
// that worker 0 finds best into them.
void choose_mesh(const MeshTask& task, TrainerOptions& options);

// A collective call: no copies of parts (cluster.mirror_every) where there is no room for them in
// `cluster.memory`.
void spare_mirrors(const MeshTask& task, TrainerOptions& options);

// Throws if this worker needs more memory than it has, and says what would fit.
void check_worker_memory(const MeshTask& task, const TrainerOptions& options);

}  // namespace artel
