// Cross-validation.
#pragma once

#include <string>

#include "artel/run/run.h"

namespace artel::cli {

// N-fold cross-validation. Trains once per fold, in the subfolders fold-0, fold-1, ... of the run
// folder, and prints the results of the held-out parts with mean and standard deviation. With
// `resume`, continues unfinished folds and keeps finished ones. Throws with the exit code of the
// first fold that fails.
void cross_validate(const std::string& file, int folds, const RunOptions& options);

}  // namespace artel::cli
