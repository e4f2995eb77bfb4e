// Chooses the mesh for cluster.mesh = "auto", and checks that each worker's part fits into its
// memory.
#pragma once

#include "artel/cluster/cluster.h"
#include "artel/train/step/stepper.h"
#include "artel/train/trainer.h"

namespace artel {

// The subject of the choice. The stepper has compiled the lanes of its batches.
struct MeshTask {
  const Cluster& cluster;
  Stepper& stepper;
  int64_t batch_size = 0;
  double taken = 0;  // bytes that this process needs for other things, such as data
};

// True if `choose_mesh` has set the axes for workers on several machines.
bool chooses_mesh(const Cluster& cluster, const StrategyOptions& options);

// Collective. If cluster.mesh = "auto", sets the axes and the sharding that worker 0 finds best.
// Workers on several machines first measure their speeds, which takes half a second, and the links
// between them.
void choose_mesh(const MeshTask& task, TrainerOptions& options);

// Collective, between two steps of a chosen mesh. Measures speeds and links again. Returns true
// if another choice is worth it, and stores it in `options`. `asked` are the options of the
// original choice.
bool reconsider_mesh(const MeshTask& task, const StrategyOptions& asked, TrainerOptions& options);

// On worker 0: the forecast time of a step in seconds. 0 on other workers, with parameter servers,
// or if this machine was not measured with `artel plan --measure`.
double forecast_step(const MeshTask& task, const TrainerOptions& options);

// Collective. Disables copies of parts (cluster.mirror_every) if they do not fit into
// `cluster.memory`.
void spare_mirrors(const MeshTask& task, TrainerOptions& options);

// Throws if this worker needs more memory than it has, and suggests what would fit.
void check_worker_memory(const MeshTask& task, const TrainerOptions& options);

}  // namespace artel
