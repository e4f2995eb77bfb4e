// A search for good settings: trials with values drawn at random, of which the better ones are
// trained longer (successive halving; asynchronous, as Li et al., 2020, so that no trial waits for
// another). This is what to do next, given what is known; `artel sweep` does it in processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace artel {

// What a sweep varies: "train.optimizer.lr=0.01..1 log", "train.batch_size=16..256" (whole numbers
// if both ends are) or "model.name=mlp|lenet5".
struct SweepDimension {
  std::string key;
  double low = 0, high = 0;
  bool logarithmic = false, whole = false;
  std::vector<std::string> choices;  // in place of a range

  bool is_range() const { return choices.empty(); }
};

// Nothing if the text is an ordinary override. Throws for a range that is none.
std::optional<SweepDimension> parse_dimension(const std::string& setting);

// The value of one trial: a function of (seed, trial, key) alone.
std::string drawn_value(const SweepDimension& dimension, uint64_t seed, int trial);

// The lengths to which trials are trained: `longest`, a fraction of it, a fraction of that, at most
// three; ascending. `fraction` 1: `longest` alone.
std::vector<int64_t> rungs_of(int64_t longest, int64_t fraction);

// A trial, to be trained to the length of a rung.
struct SweepJob {
  int trial = 0;
  int rung = 0;
  auto operator<=>(const SweepJob&) const = default;
};

// What is known: a value for each job that has ended, or nothing if it failed.
using SweepResults = std::map<SweepJob, std::optional<double>>;

struct SweepRules {
  int trials = 1;
  int rungs = 1;
  int64_t fraction = 3;  // of the trials of a rung, one in so many goes on to the next
  bool less_is_better = true;
};

// The trials that have ended at a rung without failing, best first.
std::vector<int> ranking(const SweepResults& results, int rung, bool less_is_better);

// The next job, while `running` are under way: a trial that is good enough to be trained longer,
// the longest first, or else a new one. Nothing: there is nothing to begin now. The best of the
// last rung is trained to the end in any case.
std::optional<SweepJob> next_job(const SweepRules& rules, const SweepResults& results,
                                 const std::set<SweepJob>& running);

}  // namespace artel
