// Benchmark of all_reduce on a group by algorithm and size, as rows, a table, and a plot.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "artel/comm/collectives/calibration.h"
#include "artel/comm/group.h"

namespace artel::comm {

struct BenchmarkOptions {
  std::vector<size_t> sizes{4 << 10, 64 << 10, 1 << 20, 16 << 20};  // bytes
  std::vector<Algorithm> algorithms{Algorithm::automatic};
  bool shared_memory = true;  // buffers from Group::allocate, or from the heap
  double seconds = 0.3;       // per row, about
};

struct BenchmarkRow {
  Algorithm algorithm;
  size_t bytes;
  double seconds;              // median over repetitions of the slowest rank's time
  double algorithm_bandwidth;  // bytes per second
  double bus_bandwidth;        // times 2(N-1)/N: comparable with the speed of the wire
};

// Collective; sums of f32. All ranks get the same rows.
std::vector<BenchmarkRow> benchmark_all_reduce(Group& group, const BenchmarkOptions& options);

// Collective; the median time of the canonical reduction with one lane on each rank, of buffers
// from Group::allocate, for about `seconds` in all.
double benchmark_lane_reduce(Group& group, size_t bytes, double seconds);

// Time, algorithm and bus bandwidth, one line per row.
std::string benchmark_table(std::span<const BenchmarkRow> rows);
// Bus bandwidth over size, one curve per algorithm, as an SVG document.
std::string benchmark_svg(std::span<const BenchmarkRow> rows);

// Collective: measures latency and bandwidth between neighbours inside a host and between hosts, in
// less than a tenth of a second at 1 Gbit/s, and makes the group choose algorithms by them. All
// ranks get the same numbers.
Calibration calibrate(Group& group);

// Like the above, but rank 0 first looks for a cached result in the file `cache`, which has one
// line per layout of ranks on hosts. Sets `remembered`, if given, on all ranks to true if a cached
// result was used.
Calibration calibrate(Group& group, const std::string& cache, bool* remembered = nullptr);

}  // namespace artel::comm
