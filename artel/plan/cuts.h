// Cuts a sequence of nodes into stages such that the longest stage is as short as possible.
//
// Dynamic programming: the optimum for the first `last` nodes in k stages is the minimum, over all
// `first`, of max(optimum for the first `first` nodes in k-1 stages, stage k over [first, last)).
// Takes O(stages * nodes^2) evaluations of a stage. Because measured times are never equal, a
// second pass selects, among cuts within a small tolerance of the optimum, those that send the
// fewest bytes.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace artel::plan {

// Time of a stage that does not fit into memory.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct CutProblem {
  int nodes = 0, stages = 1;
  // Time of stage `stage` with the nodes [first, last), first < last; kNever if it does not fit.
  // Must not decrease when nodes are added.
  std::function<double(int stage, int first, int last)> seconds;
  std::function<double(int cut)> bytes;  // sent over the cut before that node
  double slack = 0.01;                   // relative tolerance within which times count as equal
};

// The first node of each stage; empty if no cuts fit. Requires nodes >= stages.
using StageBegins = std::vector<int>;
std::optional<StageBegins> best_cuts(const CutProblem& problem);

// Time of the longest stage, and bytes sent over all cuts.
double longest_stage(const CutProblem& problem, const StageBegins& begins);
double bytes_over_cuts(const CutProblem& problem, const StageBegins& begins);

// Cuts that balance the sum of node weights over the stages, for use without times. No stage is
// empty.
StageBegins equal_cuts(const std::vector<double>& weights, int stages);

}  // namespace artel::plan
