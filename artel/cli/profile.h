// Profiles a training step.
#pragma once

#include <string>

#include "artel/cli/step_bench.h"

namespace artel::cli {

// A table of all kernels, slowest first: time, share of the step, operations per second, and the
// share of the processor's peak.
std::string profile(StepBench& bench, double seconds);

}  // namespace artel::cli
