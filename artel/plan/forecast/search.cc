#include "artel/plan/forecast/search.h"

#include <algorithm>
#include <set>
#include <tuple>

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

std::vector<int64_t> worker_counts(const Machines& machines, int64_t asked) {
  if (asked > 0) return {asked};
  std::vector<int64_t> counts;
  const int64_t all = machines.workers();
  for (int64_t count = 1; count < all; count *= 2) counts.push_back(count);
  counts.push_back(all);
  return counts;
}

void sort_by(std::vector<TrainingForecast>& forecasts, const Goal& goal) {
  std::ranges::stable_sort(forecasts, {},
                           [&](const TrainingForecast& f) { return value_of(f, goal); });
}

// The first forecast for each number of workers and mesh.
std::vector<TrainingForecast> first_of_meshes(const std::vector<TrainingForecast>& sorted,
                                              size_t wanted) {
  std::set<std::tuple<int64_t, int, int>> seen;
  std::vector<TrainingForecast> best;
  for (const TrainingForecast& f : sorted) {
    const Combination& c = f.combination;
    if (best.size() < wanted && seen.emplace(c.workers, c.pipeline, c.tensor).second)
      best.push_back(f);
  }
  return best;
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
  for (const int64_t count : worker_counts(forecaster.machines(), workers))
    for (TrainingForecast& f : forecaster.all(count)) {
      if (result.tried++ == 0 || f.memory.total() < result.smallest.memory.total())
        result.smallest = f;
      if (f.fits() && is_in_time(f, goal, forecaster.task().steps)) fitting.push_back(std::move(f));
    }
  require(result.tried > 0, ErrorKind::invalid_argument,
          "--workers: got {} for a batch of {} samples, expected at most one worker for each, or "
          "a multiple of the stages; try a larger train.batch_size",
          workers, forecaster.task().batch);
  result.fitting = fitting.size();
  sort_by(fitting, goal);
  result.best = first_of_meshes(fitting, wanted);
  return result;
}

std::optional<TrainingForecast> with_fewest_workers(TrainingForecaster& forecaster,
                                                    const Goal& goal) {
  for (int64_t count = 1; count <= kMostWorkers; count *= 2) {
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
  const std::string limit = fmt::format("limited by {}", to_string(f.bottleneck));
  if (slower > 1 + kWorthwhile && slower < 2)
    return fmt::format("{:.0f} % slower, {}", 100 * (slower - 1), limit);
  if (slower >= 2) return fmt::format("{:.3g} times as slow, {}", slower, limit);
  if (slower < 1 - kWorthwhile) return fmt::format("{:.3g} times as fast, {}", 1 / slower, limit);
  return limit;
}

}  // namespace artel::plan
