// Cross-validation.
#pragma once

#include <string>

#include "artel/run/run.h"

namespace artel::cli {

// Trains once for each of `folds` parts of the training samples, without that part, in folders
// fold-0, fold-1, ... of the run's, and prints what the held-out parts gave, with mean and standard
// deviation. With `resume`, folds that are there go on, or are left as they are if they have ended.
// Throws with the exit code of the first fold that fails.
void cross_validate(const std::string& file, int folds, const RunOptions& options);

}  // namespace artel::cli
