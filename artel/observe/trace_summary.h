// Summary of a trace as text and tables: time per activity, the workers that others waited for, and
// the speedup without waiting and without the wire. A pure function of the trace.
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
  double step_seconds = 0;  // mean over steps and workers
  double clock_error = 0;   // seconds; bound on the difference between two workers' clocks
  using Parts = std::array<double, kStepParts>;  // time shares by StepPart
  Parts parts = {};                              // over all workers
  struct Worker {
    std::string name;
    double step_seconds = 0;
    Parts parts = {};
    int64_t awaited = 0;  // steps whose critical path went through this worker
  };
  std::vector<Worker> workers = {};
  double waited_seconds = 0;  // mean time per step that workers waited for the awaited one
  // Share of all computing time, and core seconds per step of all workers. Largest first.
  struct Op {
    std::string name;
    double share = 0, seconds = 0;
  };
  std::vector<Op> ops = {};
  // Speedup of a step; 1 means no gain. `without_waiting` assumes perfectly balanced work.
  double without_waiting = 1, without_wire = 1, without_both = 1, without_data = 1;
  // The step of median length as a timeline. Times are relative to the earliest begin of a worker.
  int64_t shown_step = 0;
  double shown_seconds = 0;
  std::vector<std::pair<std::string, std::vector<StepPiece>>> shown = {};  // by worker
};

// Empty if no step was recorded by all workers.
std::optional<TraceSummary> summarize(const Trace& trace);

std::string to_json(const TraceSummary& summary);
// Sentences, a table of workers, and a table of ops, in lines of at most `width` characters.
std::string to_text(const TraceSummary& summary, int width = 100);

}  // namespace artel::observe
