#include "artel/plan/cuts.h"

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"

namespace artel::plan {
namespace {

// The partition of least cost. `join` combines the cost so far with that of the next stage.
struct Partition {
  double cost = kNever;
  StageBegins begins;
};

template <typename Join>
Partition best_partition(int nodes, int stages, const Join& join) {
  std::vector<double> best(static_cast<size_t>(nodes) + 1, kNever), next(best.size());
  best[0] = 0;
  std::vector<std::vector<int>> begin_of(static_cast<size_t>(stages),
                                         std::vector<int>(best.size(), -1));
  for (int stage = 0; stage < stages; ++stage) {
    std::fill(next.begin(), next.end(), kNever);
    // Every stage, including later ones, needs at least one node.
    for (int last = stage + 1; last <= nodes - (stages - 1 - stage); ++last)
      for (int first = last - 1; first >= stage; --first) {
        const double cost = best[first] == kNever ? kNever : join(best[first], stage, first, last);
        if (cost >= next[last]) continue;
        next[last] = cost;
        begin_of[stage][last] = first;
      }
    best.swap(next);
  }
  Partition result = {best[nodes], {}};
  if (result.cost == kNever) return result;
  for (int stage = stages - 1, last = nodes; stage >= 0; --stage) {
    last = begin_of[stage][last];
    result.begins.insert(result.begins.begin(), last);
  }
  return result;
}

int end_of_stage(const CutProblem& problem, const StageBegins& begins, size_t stage) {
  return stage + 1 < begins.size() ? begins[stage + 1] : problem.nodes;
}

}  // namespace

std::optional<StageBegins> best_cuts(const CutProblem& problem) {
  require(problem.stages > 0 && problem.nodes >= problem.stages, ErrorKind::invalid_argument,
          "[pipeline] got {} stages for {} ops, expected at most one for each; try {}",
          problem.stages, problem.nodes, problem.nodes);
  const Partition shortest = best_partition(
      problem.nodes, problem.stages, [&](double before, int stage, int first, int last) {
        return std::max(before, problem.seconds(stage, first, last));
      });
  if (shortest.cost == kNever) return std::nullopt;
  const double limit = shortest.cost * (1 + problem.slack);
  return best_partition(problem.nodes, problem.stages,
                        [&](double before, int stage, int first, int last) {
                          if (problem.seconds(stage, first, last) > limit) return kNever;
                          return before + (first > 0 ? problem.bytes(first) : 0);
                        })
      .begins;
}

double longest_stage(const CutProblem& problem, const StageBegins& begins) {
  double longest = 0;
  for (size_t stage = 0; stage < begins.size(); ++stage)
    longest = std::max(longest, problem.seconds(static_cast<int>(stage), begins[stage],
                                                end_of_stage(problem, begins, stage)));
  return longest;
}

double bytes_over_cuts(const CutProblem& problem, const StageBegins& begins) {
  double bytes = 0;
  for (size_t stage = 1; stage < begins.size(); ++stage) bytes += problem.bytes(begins[stage]);
  return bytes;
}

StageBegins equal_cuts(const std::vector<double>& weights, int stages) {
  const int nodes = static_cast<int>(weights.size());
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  StageBegins begins = {0};
  double before = 0;
  for (int node = 0; node < nodes && static_cast<int>(begins.size()) < stages; ++node) {
    const auto stage = static_cast<int>(begins.size());
    // Cuts where the sum of the preceding weights is nearest to its share, leaving enough nodes.
    const bool reached = before + weights[node] / 2 > total * stage / stages;
    const bool must = nodes - node <= stages - stage;
    if (node > begins.back() && (reached || must)) begins.push_back(node);
    before += weights[node];
  }
  return begins;
}

}  // namespace artel::plan
