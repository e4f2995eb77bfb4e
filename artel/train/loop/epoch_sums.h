// The sums of the steps of an epoch (TrainerState::epoch). Internal to train.
#pragma once

#include <optional>

#include "artel/train/strategy.h"
#include "artel/train/trainer_state.h"

namespace artel {

// The sums of an interrupted epoch continue only if they belong to these metrics. Checkpoints of
// earlier versions do not name their metrics.
void continue_epoch_sums(TrainerState& state, const Metrics& metrics);
void add_to_epoch(TrainerState& state, const Strategy::Outcome& outcome);
// Noise scale of the epoch so far.
std::optional<double> noise_scale_of(const GradientNoise& sums);

}  // namespace artel
