// Where the time of a training step goes.
#pragma once

#include <string>

#include "artel/cli/step_bench.h"

namespace artel::cli {

// A table of all kernels, slowest first: time, share of the step, operations a second, and how much
// of what the processor can do at best that is.
std::string profile(StepBench& bench, double seconds);

}  // namespace artel::cli
