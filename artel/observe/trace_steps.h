// What each worker did in each traced step: a trace turned into pieces of time that follow one
// another and fill the step.
//
// Time in which a worker waits for a sum is divided by what the others did: until the last of them
// has begun to exchange it, it waits for workers; from then on for the wire. That needs clocks that
// agree (TraceSummary::clock_error).
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
  double begin = 0, seconds = 0;  // in the time of the trace
};

struct WorkerStep {
  double begin = 0, seconds = 0;
  std::vector<StepPiece> pieces = {};      // in order
  std::map<std::string, double> ops = {};  // seconds of the kernels of all lanes, by op
};

// The steps that all workers have made, by number; in each, the workers by process.
using TracedSteps = std::map<int64_t, std::map<int, WorkerStep>>;
TracedSteps traced_steps(const Trace& trace);

}  // namespace artel::observe
