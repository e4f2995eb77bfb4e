// Searches for the best way to train: number of workers, mesh, sharding, recomputation, strategy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/plan/forecast/training_forecast.h"

namespace artel::plan {

// The criterion that a search optimises.
struct Goal {
  enum class Kind { fastest, cheapest, fewest_machines } kind = Kind::fastest;
  double within = 0;  // time limit of the whole training in seconds; 0 means no limit
};
// Parses "fastest", "cheapest", "fewest machines", or "within 10 hours". The last one selects the
// cheapest plan within the time limit or, without prices, the one with the fewest machines. Throws
// for other text.
Goal parse_goal(std::string_view text);
std::string to_string(const Goal& goal);

struct SearchResult {
  // Those that fit, best first. All combinations compete. A combination is left out if a better one
  // with the same workers and mesh needs no more memory.
  std::vector<TrainingForecast> best;
  TrainingForecast smallest;  // the one with the least memory, even if it does not fit
  size_t tried = 0, fitting = 0;
};

// Tries plans for `workers` workers. If `workers` is 0, tries every number up to 16, powers of two,
// and all workers of the machines.
SearchResult search(TrainingForecaster& forecaster, const Goal& goal, int64_t workers,
                    size_t wanted = 10);

// The plan with the fewest workers that fits and meets the goal, up to 2^20 workers; beyond 16,
// only powers of two. May use more machines than the machine file has. Empty if no plan does.
std::optional<TrainingForecast> with_fewest_workers(TrainingForecaster& forecaster,
                                                    const Goal& goal);

// Compares a plan with the best one, e.g. "31 % slower, 0.4 of the memory, limited by network".
std::string reason_for(const TrainingForecast& forecast, const TrainingForecast& best);

}  // namespace artel::plan
