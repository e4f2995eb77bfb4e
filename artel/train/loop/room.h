// Checks that the workers of a membership have enough memory for the network and enough lanes.
// Internal to train.
#pragma once

#include "artel/train/lane_partition.h"
#include "artel/train/strategies/mesh_choice.h"
#include "artel/train/trainer_state.h"

namespace artel {

// Chooses a mesh that fits into the memory of the workers. If too little memory remains after a
// change of the workers, they keep their copies and wait for up to `most` workers. Collective.
void find_room(TrainerState& state, const MeshTask& task, int most);
// Throws if there are more workers than lanes and they cannot stand by.
void check_lanes(const TrainerState& state, const LanePartition& lane_partition, bool stands_by);

}  // namespace artel
