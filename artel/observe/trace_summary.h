// What a trace says, in words and as a table: what took the step, whom the workers waited for, and
// what it would be like without waiting and without the wire. A pure function of the trace.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artel/observe/trace_steps.h"

namespace artel::observe {

struct TraceSummary {
  int64_t first_step = 0, steps = 0;
  double step_seconds = 0;  // the mean over steps and workers
  double clock_error = 0;   // seconds by which the clocks of two workers may differ
  using Parts = std::array<double, kStepParts>;  // shares of the time, by StepPart
  Parts parts = {};                              // of all workers
  struct Worker {
    std::string name;
    double step_seconds = 0;
    Parts parts = {};
    int64_t awaited = 0;  // steps in which the others waited for it: the critical path was here
  };
  std::vector<Worker> workers = {};
  double waited_seconds =
      0;  // in a step, by those who waited for the one they waited for; the mean
  // Share of all computing, and seconds of a core in a step of all workers; the largest first.
  struct Op {
    std::string name;
    double share = 0, seconds = 0;
  };
  std::vector<Op> ops = {};
  // How many times faster steps would be; 1: no gain. Without waiting for workers: if each had just
  // enough to do to be ready with the others.
  double without_waiting = 1, without_wire = 1, without_both = 1, without_data = 1;
  // The step of median length as a timeline; pieces begin with 0, the begin of the first worker's.
  int64_t shown_step = 0;
  double shown_seconds = 0;
  std::vector<std::pair<std::string, std::vector<StepPiece>>> shown = {};  // by worker
};

// Nothing if there is no step in it that all workers have made.
std::optional<TraceSummary> summarize(const Trace& trace);

std::string to_json(const TraceSummary& summary);
// Sentences, a table of workers and one of ops, in lines of at most so many characters.
std::string to_text(const TraceSummary& summary, int width = 100);

}  // namespace artel::observe
