// Computes the memory for training on one worker before its first step.
#pragma once

#include "artel/exec/step_memory.h"
#include "artel/train/strategies/sharded.h"

namespace artel {

struct MemoryNeeds {
  StepMemory lane;        // of the largest lane; its parameters are those of the whole network
  size_t parameters = 0;  // kept by the worker
  size_t optimizer = 0;   // optimizer state
  int frames = 1;         // one per lane
  int groups = 1;         // groups that run concurrently; a frame of each has workspaces
  int sums = 1;           // sums of lanes in memory at the same time
  // For sharded weights or gradients: the temporary memory for other workers' parts.
  size_t passing_weights = 0;
  size_t last_gradients = 0;  // part of the last of `sums`
  // Mapped gradients of other workers on this machine, which this worker adds up.
  size_t others_gradients = 0;
  // Copies of parts (cluster.mirror_every), made if there is room for them. Not part of `total`.
  size_t mirrors = 0;

  size_t activations() const {
    return lane.activations * static_cast<size_t>(groups) +
           lane.borrowing * static_cast<size_t>(frames - groups);
  }
  size_t gradients() const {
    return lane.gradients * static_cast<size_t>(sums - 1) + last_gradients;
  }
  size_t weights() const { return parameters + passing_weights; }
  size_t total() const {
    return weights() + optimizer + gradients() + others_gradients + activations();
  }
};

// The memory of a worker with `lanes` lanes of a batch. `program` is the program of the largest
// lane, `slots` the number of optimizer values per trained parameter. `workers` is the number of
// workers among which `sharding` divides the state.
MemoryNeeds memory_needs(const Program& program, int lanes, int threads, int slots, int workers = 1,
                         const ShardingOptions& sharding = {});

}  // namespace artel
