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

  bool operator==(const ExchangePath&) const = default;
};

// "ring, fast"
inline std::string to_string(const ExchangePath& path) {
  return path.algorithm.empty() ? "" : path.algorithm + ", " + path.reduction;
}

}  // namespace artel
