// How much memory training takes on one worker, known before its first step.
#pragma once

#include "artel/exec/step_memory.h"
#include "artel/train/strategies/sharded.h"

namespace artel {

struct MemoryNeeds {
  StepMemory lane;        // the largest lane; its parameters are those of the whole network
  size_t parameters = 0;  // what the worker keeps of them
  size_t optimizer = 0;   // what it remembers between steps
  int frames = 1;         // lanes that run together
  int sums = 1;           // sums of lanes that are in memory at the same time
  // Of weights, or of gradients, that lie in parts: what of the others' is there for a while.
  size_t passing_weights = 0;
  size_t last_gradients = 0;  // of the last of `sums`
  // Of the gradients of other workers on this machine: what it reads to add them up.
  size_t others_gradients = 0;
  // Of copies of parts (cluster.mirror_every), where there is room for them: not part of `total`.
  size_t mirrors = 0;

  size_t activations() const { return lane.activations * static_cast<size_t>(frames); }
  size_t gradients() const {
    return lane.gradients * static_cast<size_t>(sums - 1) + last_gradients;
  }
  size_t weights() const { return parameters + passing_weights; }
  size_t total() const {
    return weights() + optimizer + gradients() + others_gradients + activations();
  }
};

// Of a worker that runs `lanes` lanes of a batch; `program` is that of the largest, and `slots` is
// how many numbers the optimizer keeps for each that is trained. It is one of `workers` that keep
// parts of what `sharding` says.
MemoryNeeds memory_needs(const Program& program, int lanes, int threads, int slots, int workers = 1,
                         const ShardingOptions& sharding = {});

}  // namespace artel
