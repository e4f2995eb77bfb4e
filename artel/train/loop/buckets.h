// The size of the buckets in which gradients are exchanged. Internal to train.
#pragma once

#include "artel/train/trainer_state.h"

namespace artel {

// Sets the configured size, which all workers have in common when they compare what they are about
// to do.
void reset_buckets(const TrainerState& state, Stepper& stepper);
// Between hosts, if no size is configured: chooses the size by the measured links. Changes no bits
// where lanes are added exactly. Collective.
void choose_buckets(TrainerState& state, Stepper& stepper);

}  // namespace artel
