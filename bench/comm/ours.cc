// One rank of our all_reduce: artel_bench_comm TRANSPORT RANK SIZE ADDRESS MEMORY ALGORITHM
// BYTES... where MEMORY is arena, heap or lanes (the canonical reduction in the arena, one lane a
// rank). Rank 0 prints "BYTES SECONDS" for each size.
#include <fmt/core.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/comm/benchmark.h"

namespace artel::comm {
namespace {

// The median time of lane_reduce with one lane on each rank.
double lane_seconds(Group& group, size_t bytes) {
  const SharedBytes memory = group.allocate(bytes);
  const LaneLayout layout = LaneLayout::even(group.size(), group.size());
  std::byte* const partial = memory.get();
  std::vector<double> times;
  const int repetitions = bytes > (4 << 20) ? 15 : 200;
  for (int i = 0; i < repetitions; ++i) {
    group.barrier();
    const auto begin = Clock::now();
    group.lane_reduce(layout, {&partial, 1}, {partial, bytes}, ElementType::f32);
    times.push_back(seconds_between(begin, Clock::now()));
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

void run(char** arguments, int count) {
  const std::string memory = arguments[5];
  Group group = Group::connect({.transport = arguments[1],
                                .rank = std::stoi(arguments[2]),
                                .size = std::stoi(arguments[3]),
                                .address = arguments[4]});
  for (int i = 7; i < count; ++i) {
    const size_t bytes = std::stoul(arguments[i]);
    const double seconds =
        memory == "lanes"
            ? lane_seconds(group, bytes)
            : benchmark_all_reduce(group, {.sizes = {bytes},
                                           .algorithms = {algorithm_from_string(arguments[6])},
                                           .shared_memory = memory == "arena"})[0]
                  .seconds;
    if (group.rank() == 0) fmt::print("{} {:.9f}\n", bytes, seconds);
  }
}

}  // namespace
}  // namespace artel::comm

int main(int argc, char** argv) {
  if (argc < 8) {
    fmt::print(stderr,
               "usage: artel_bench_comm TRANSPORT RANK SIZE ADDRESS MEMORY ALGORITHM BYTES...\n");
    return 2;
  }
  try {
    artel::comm::run(argv, argc);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
