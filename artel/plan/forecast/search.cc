#include "artel/plan/forecast/search.h"

#include <algorithm>
#include <map>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/plan/machines/units.h"

namespace artel::plan {
namespace {

// Relative difference below which two times count as equal, so that the simpler plan wins.
constexpr double kWorthwhile = 0.03;
constexpr int64_t kMostWorkers = int64_t{1} << 20;

// The price of a step, or its machine time if prices are unknown.
double cost_of(const TrainingForecast& f) {
  const double rate = f.pool.price > 0 ? f.pool.price : static_cast<double>(f.pool.machines);
  return rate * f.seconds();
}

bool is_in_time(const TrainingForecast& f, const Goal& goal, double steps) {
  return goal.within <= 0 || f.seconds() * steps <= goal.within;
}

// Complexity of a combination. Breaks ties between equally good ones.
int complexity(const Combination& c) {
  return (c.pipeline > 1 ? 2 : 0) + (c.tensor > 1 ? 2 : 0) + (c.sharding != "none" ? 1 : 0) +
         (c.recompute ? 1 : 0) + (c.strategy != "auto" ? 2 : 0);
}

// The objective to minimise.
double value_of(const TrainingForecast& f, const Goal& goal) {
  const double simple = 1 + kWorthwhile / 8 * complexity(f.combination);
  switch (goal.kind) {
    case Goal::Kind::fastest:
      return f.seconds() * simple;
    case Goal::Kind::cheapest:
      return cost_of(f) * simple;
    case Goal::Kind::fewest_machines:
      // Ties are broken by time.
      return static_cast<double>(f.pool.machines) + simple * f.seconds() / (1 + f.seconds());
  }
  return 0;
}

// Every number of workers up to 16, then powers of two.
int64_t next_count(int64_t count) { return count < 16 ? count + 1 : 2 * count; }

std::vector<int64_t> worker_counts(const Machines& machines, int64_t asked) {
  if (asked > 0) return {asked};
  std::vector<int64_t> counts;
  const int64_t all = machines.workers();
  for (int64_t count = 1; count < all; count = next_count(count)) counts.push_back(count);
  counts.push_back(all);
  return counts;
}

void sort_by(std::vector<TrainingForecast>& forecasts, const Goal& goal) {
  std::ranges::stable_sort(forecasts, {},
                           [&](const TrainingForecast& f) { return value_of(f, goal); });
}

bool same_mesh(const Combination& a, const Combination& b) {
  return a.workers == b.workers && a.pipeline == b.pipeline && a.tensor == b.tensor;
}

// True if `better`, which is faster, makes `f` redundant: it has the same mesh and needs no more
// memory.
bool replaces(const TrainingForecast& better, const TrainingForecast& f) {
  return same_mesh(better.combination, f.combination) &&
         better.memory.total() <= f.memory.total() * (1 + kWorthwhile);
}

std::vector<TrainingForecast> first_ones(const std::vector<TrainingForecast>& sorted,
                                         size_t wanted) {
  std::vector<TrainingForecast> best;
  for (const TrainingForecast& f : sorted) {
    const auto replaces_it = [&](const TrainingForecast& better) { return replaces(better, f); };
    if (best.size() < wanted && std::ranges::none_of(best, replaces_it)) best.push_back(f);
  }
  return best;
}

// Memory limits a plan if more of it would make the same number of workers faster.
void mark_memory_limits(std::vector<TrainingForecast>& best,
                        const std::map<int64_t, double>& fastest_that_does_not_fit) {
  for (TrainingForecast& f : best) {
    const auto faster = fastest_that_does_not_fit.find(f.combination.workers);
    if (faster != fastest_that_does_not_fit.end() &&
        faster->second < f.seconds() / (1 + kWorthwhile))
      f.bottleneck = Bottleneck::memory_size;
  }
}

}  // namespace

Goal parse_goal(std::string_view text) {
  const std::string_view goal = trim(text);
  if (goal == "fastest") return {};
  if (goal == "cheapest") return {.kind = Goal::Kind::cheapest};
  if (goal == "fewest machines" || goal == "fewest") return {.kind = Goal::Kind::fewest_machines};
  constexpr std::string_view kWithin = "within ";
  require(goal.starts_with(kWithin), ErrorKind::invalid_argument,
          "--goal: got \"{}\", expected fastest, cheapest, fewest machines, or a time such as "
          "\"within 10 hours\"",
          printable_line(text.substr(0, 60)));
  return {.kind = Goal::Kind::cheapest,
          .within = parse_quantity(goal.substr(kWithin.size()), Unit::seconds)};
}

std::string to_string(const Goal& goal) {
  if (goal.within > 0) return fmt::format("within {}", format_long_time(goal.within));
  switch (goal.kind) {
    case Goal::Kind::fastest:
      return "fastest";
    case Goal::Kind::cheapest:
      return "cheapest";
    case Goal::Kind::fewest_machines:
      return "fewest machines";
  }
  return "";
}

SearchResult search(TrainingForecaster& forecaster, const Goal& goal, int64_t workers,
                    size_t wanted) {
  SearchResult result;
  std::vector<TrainingForecast> fitting;
  std::map<int64_t, double> too_large;  // seconds of the fastest one, by workers
  for (const int64_t count : worker_counts(forecaster.machines(), workers))
    for (TrainingForecast& f : forecaster.all(count)) {
      if (result.tried++ == 0 || f.memory.total() < result.smallest.memory.total())
        result.smallest = f;
      if (!f.fits()) {
        double& least = too_large.try_emplace(count, f.seconds()).first->second;
        least = std::min(least, f.seconds());
      }
      if (f.fits() && is_in_time(f, goal, forecaster.task().steps)) fitting.push_back(std::move(f));
    }
  require(result.tried > 0, ErrorKind::invalid_argument,
          "--workers: got {} for a batch of {} samples, expected at most one worker for each, or "
          "a multiple of the stages; try a larger train.batch_size",
          workers, forecaster.task().batch);
  result.fitting = fitting.size();
  sort_by(fitting, goal);
  result.best = first_ones(fitting, wanted);
  mark_memory_limits(result.best, too_large);
  return result;
}

std::optional<TrainingForecast> with_fewest_workers(TrainingForecaster& forecaster,
                                                    const Goal& goal) {
  for (int64_t count = 1; count <= kMostWorkers; count = next_count(count)) {
    std::vector<TrainingForecast> fitting;
    for (TrainingForecast& f : forecaster.all(count))
      if (f.fits() && is_in_time(f, goal, forecaster.task().steps)) fitting.push_back(std::move(f));
    if (fitting.empty()) continue;
    sort_by(fitting, {});
    return fitting[0];
  }
  return std::nullopt;
}

std::string reason_for(const TrainingForecast& f, const TrainingForecast& best) {
  const double slower = f.seconds() / best.seconds();
  std::string text;
  if (slower > 1 + kWorthwhile && slower < 2)
    text = fmt::format("{:.0f} % slower, ", 100 * (slower - 1));
  else if (slower >= 2)
    text = fmt::format("{:.3g} times as slow, ", slower);
  else if (slower < 1 - kWorthwhile)
    text = fmt::format("{:.3g} times as fast, ", 1 / slower);
  const double memory = f.memory.total() / best.memory.total();
  if (same_mesh(f.combination, best.combination) && memory < 1 - kWorthwhile)
    text += fmt::format("{:.2g} of the memory, ", memory);
  return text + fmt::format("limited by {}", to_string(f.bottleneck));
}

}  // namespace artel::plan
