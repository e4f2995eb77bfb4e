// The activities of each worker in each traced step, as consecutive pieces that fill the step.
//
// While a worker waits for a sum, it waits for workers until the last of them has started to
// exchange it, and for the wire from then on. This needs synchronised clocks
// (TraceSummary::clock_error).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "artel/observe/trace.h"

namespace artel::observe {

enum class StepPart { computing, data, workers, wire, updating, other };
constexpr int kStepParts = 6;

struct StepPiece {
  StepPart part = StepPart::other;
  double begin = 0, seconds = 0;  // relative to the origin of the trace
};

struct WorkerStep {
  double begin = 0, seconds = 0;
  std::vector<StepPiece> pieces = {};      // in order
  std::map<std::string, double> ops = {};  // kernel seconds over all lanes, by op
};

// The steps recorded by all workers: step number to process to WorkerStep.
using TracedSteps = std::map<int64_t, std::map<int, WorkerStep>>;
TracedSteps traced_steps(const Trace& trace);

}  // namespace artel::observe
