// The exchange algorithm of a run, for reports.
//
//   const artel::ExchangePath path = {.algorithm = "ring", .reduction = "fast"};
//   artel::println("{}", to_string(path));  // ring, fast
#pragma once

#include <string>

namespace artel {

struct ExchangePath {
  // "ring", "direct", "coordinator", "parameter servers", ...; empty with one worker.
  std::string algorithm = {};
  // "exact" (same bits on any number of workers), "fast" (another order of additions), "lossy",
  // "local" (weights are averaged periodically), or "asynchronous".
  std::string reduction = {};
  // The setting that selects this path, such as `cluster.compress = "int8"`; empty if
  // `cluster.strategy` and `cluster.reduction` select it.
  std::string decided_by = {};

  bool operator==(const ExchangePath&) const = default;
};

// "ring, fast"
inline std::string to_string(const ExchangePath& path) {
  return path.algorithm.empty() ? "" : path.algorithm + ", " + path.reduction;
}

}  // namespace artel
