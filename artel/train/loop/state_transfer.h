// Gives all workers the state of one worker at the beginning of a membership. Internal to train.
#pragma once

#include "artel/train/step/workload.h"
#include "artel/train/trainer_state.h"

namespace artel {

class DividedStateTransfer;

// Sends one worker's weights and optimizer state, which it may have loaded from a file.
void share_state(TrainerState& state, Workload& workload, comm::Group& group, int root);

// Like share_state where each worker keeps only a part. Worker 0 reads parts from files and sends
// them. All workers generate initial values themselves, unless some worker has generated all of
// them.
void hand_out_state(TrainerState& state, comm::Group& group, DividedStateTransfer& divided);

}  // namespace artel
