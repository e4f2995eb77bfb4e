// What decides the bits of a run, as text that workers compare before their first step
// (train/agreement.h).
//
// Options are listed member by member: adding one without saying here whether it matters is a
// compile error.
#pragma once

#include <string>

#include "artel/data/loader.h"
#include "artel/train/agreement.h"
#include "artel/train/stepper.h"
#include "artel/train/trainer.h"

namespace artel {

Facts facts_of(const TrainerOptions& options);
Facts facts_of(const FitOptions& options);
// A few samples, spread over the set, represent its content; files are compared as a whole
// (train/data_check.h). Null: an empty set.
Facts facts_of(const std::string& name, const data::Dataset* set);
// What is computed for a lane with this many samples, layer by layer, and where sums and weights
// lie. Something must be compiled.
Facts facts_of(const Stepper& stepper, const Parameters& parameters, int64_t lane_batch);

}  // namespace artel
