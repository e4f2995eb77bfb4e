// Hyperparameter search: random trials with asynchronous successive halving (Li et al., 2020).
// These pure functions select the next job from the results so far; `artel sweep` runs the jobs in
// processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace artel {

// A dimension of a sweep: "train.optimizer.lr=0.01..1 log", "train.batch_size=16..256" (integers if
// both ends are), or "model.name=mlp|lenet5".
struct SweepDimension {
  std::string key;
  double low = 0, high = 0;
  bool logarithmic = false, whole = false;
  std::vector<std::string> choices;  // instead of a range

  bool is_range() const { return choices.empty(); }
};

// Empty for an ordinary override. Throws for an invalid range.
std::optional<SweepDimension> parse_dimension(const std::string& setting);

// The value of a trial, a pure function of (seed, trial, key).
std::string drawn_value(const SweepDimension& dimension, uint64_t seed, int trial);

// The training lengths (rungs), ascending: `longest`, a fraction of it, and a fraction of that.
// Only `longest` if `fraction` is 1.
std::vector<int64_t> rungs_of(int64_t longest, int64_t fraction);

// A trial to train up to a rung.
struct SweepJob {
  int trial = 0;
  int rung = 0;
  auto operator<=>(const SweepJob&) const = default;
};

// The value of each finished job; empty if it failed.
using SweepResults = std::map<SweepJob, std::optional<double>>;

struct SweepRules {
  int trials = 1;
  int rungs = 1;
  int64_t fraction = 3;  // one in `fraction` trials of a rung advances to the next
  bool less_is_better = true;
};

// The successful trials of a rung, best first.
std::vector<int> ranking(const SweepResults& results, int rung, bool less_is_better);

// The next job while `running` jobs are in progress: a trial that advances, longest first, or else
// a new trial. Empty if nothing can start now. The best trial of the last rung is always trained to
// the end.
std::optional<SweepJob> next_job(const SweepRules& rules, const SweepResults& results,
                                 const std::set<SweepJob>& running);

}  // namespace artel
