// Chooses the worker whose state all continue with at the beginning of a membership. Internal to
// train.
#pragma once

#include <vector>

#include "artel/train/trainer_state.h"

namespace artel {

struct StateSource {
  int rank = 0;                      // the worker whose state all continue with
  bool self_current = false;         // this worker has that state
  bool rank0_current = false;        // worker 0 has it
  bool all_current = false;          // all workers have it
  bool continues_apart = false;      // workers run apart; this one continues from its own step
  bool is_fresh = false;             // no worker has trained in another membership
  bool in_parts = false;             // no worker has the whole state; it is assembled from parts
  std::vector<bool> newcomers = {};  // by rank, if only newcomers lack the state; else empty
};

// Normally worker 0. If a group breaks in the middle of a step, only some members may have finished
// it, and one of those is chosen. At the end of an epoch, all repeat its actions, even workers that
// have completed them. `has_copies`: this worker has copies of parts. Collective.
StateSource most_advanced(const TrainerState& state, comm::Group& group, int64_t steps_per_epoch,
                          bool has_copies);

// Until the others have its state, only worker 0 knows the initial state of the run. Throws if this
// worker has no state and worker 0 is not `first`, whose number is -1 for a newcomer. Throws
// NotBegun if the fit can begin again.
void check_first_worker(const TrainerState& state, const comm::control::Participant& first);

// If workers ran apart before the run was saved, each continues after its last step that the
// weights contain. A worker without such a step starts at worker 0's. `strategy`: the name of the
// configured strategy.
void continue_after_own_step(TrainerState& state, const std::string& strategy,
                             int64_t steps_per_epoch, int64_t batch_size);

}  // namespace artel
