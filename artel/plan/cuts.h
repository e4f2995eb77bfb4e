// Where to cut a row of nodes into stages, so that the longest stage is as short as possible.
//
// Dynamic programming: the best longest stage of the first `last` nodes in k stages is the best,
// over all `first`, of the longer one of (the best of the first `first` nodes in k-1 stages) and
// (stage k over [first, last)). O(stages * nodes^2) evaluations of a stage. Measured times are
// never equal, so among cuts that are longer by no more than a small part a second pass takes those
// over which the fewest bytes go.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace artel::plan {

// The seconds of a stage that does not fit.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

struct CutProblem {
  int nodes = 0, stages = 1;
  // Of stage `stage` if it has the nodes [first, last), first < last; kNever if it does not fit.
  // A stage with more nodes never takes less.
  std::function<double(int stage, int first, int last)> seconds;
  std::function<double(int cut)> bytes;  // that go over the cut before that node
  double slack = 0.01;                   // what is longer by less than this part counts as equal
};

// The first node of each stage. Nothing if no cuts fit; `nodes` is at least `stages`.
using StageBegins = std::vector<int>;
std::optional<StageBegins> best_cuts(const CutProblem& problem);

// The longest stage, and the bytes over all cuts.
double longest_stage(const CutProblem& problem, const StageBegins& begins);
double bytes_over_cuts(const CutProblem& problem, const StageBegins& begins);

// Cuts that give all stages about the same sum of weights, one for each node: what one would do
// without knowing times. No stage is empty.
StageBegins equal_cuts(const std::vector<double>& weights, int stages);

}  // namespace artel::plan
