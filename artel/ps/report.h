// Statistics of parameter servers.
//
//   const artel::FitResult result = trainer.fit(samples, {.epochs = 3});
//   for (const auto& [staleness, iterations] : result.servers.staleness)
//     artel::println("{} iterations were {} updates behind", iterations, staleness);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace artel::ps {

struct Report {
  // Histogram: staleness (updates missed by the push that completed an iteration) to number of
  // iterations.
  std::map<int64_t, int64_t> staleness;
  std::map<int, int64_t> lost;  // lost workers, with their finished iterations
  int64_t nonzeros = 0;         // number of nonzero weights
  double penalty = 0;           // of a proximal rule at the current weights

  // Combines the reports of several servers, which have different weights but the same workers.
  Report& operator+=(const Report& other);
  bool operator==(const Report&) const = default;
};

std::string to_text(const Report& report);
// Throws an Error of kind corrupt.
Report report_from_text(std::string_view text);

}  // namespace artel::ps
