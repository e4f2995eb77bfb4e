// What parameter servers have seen of a run.
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
  // Histogram: staleness (updates missed by the push that ended an iteration) to number of
  // iterations.
  std::map<int64_t, int64_t> staleness;
  std::map<int, int64_t> lost;  // workers, and the iterations that they had finished
  int64_t nonzeros = 0;         // weights that are not zero
  double penalty = 0;           // of a proximal rule, at the present weights

  // Combines the reports of several servers: each has its own weights; all see the same workers.
  Report& operator+=(const Report& other);
  bool operator==(const Report&) const = default;
};

std::string to_text(const Report& report);
// Throws an Error of kind corrupt.
Report report_from_text(std::string_view text);

}  // namespace artel::ps
