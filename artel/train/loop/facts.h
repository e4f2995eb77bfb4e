// Everything that determines the bits of a run, as text that workers compare before their first
// step (train/loop/agreement.h).
//
// Options are listed member by member: adding one without classifying it here is a compile error.
#pragma once

#include <string>

#include "artel/data/loader.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/step/stepper.h"
#include "artel/train/trainer.h"

namespace artel {

Facts facts_of(const TrainerOptions& options);
Facts facts_of(const FitOptions& options);
// A few samples, spread over the set, represent its content; train/loop/data_check.h compares whole
// files. Null means an empty set.
Facts facts_of(const std::string& name, const data::Dataset* set);
// The computation of a lane with this many samples, layer by layer, and the layout of sums and
// weights. The stepper must have compiled a program.
Facts facts_of(const Stepper& stepper, const Parameters& parameters, int64_t lane_batch);

}  // namespace artel
