// One rank of our all_reduce: artel_bench_comm TRANSPORT RANK SIZE ADDRESS CASE[,CASE...] BYTES...
// where CASE is arena or heap (where the buffers are), lanes (the canonical reduction of buffers in
// the arena, one lane per rank) or the name of an algorithm, for buffers on the heap. Rank 0 prints
// "CASE BYTES SECONDS" for each case and size, and "CASE.cores BYTES CORES": how many cores it kept
// busy meanwhile. TRANSPORT "tls" is tcp, encrypted.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/comm/collectives/benchmark.h"

namespace artel::comm {
namespace {

double measure(Group& group, const std::string& name, size_t bytes) {
  const double seconds_for_each = group.transport() == "shm" ? 0.2 : 1.5;
  if (name == "lanes") return benchmark_lane_reduce(group, bytes, seconds_for_each);
  const bool chosen = name == "arena" || name == "heap";
  const Algorithm algorithm = chosen ? Algorithm::automatic : algorithm_from_string(name);
  return benchmark_all_reduce(group, {.sizes = {bytes},
                                      .algorithms = {algorithm},
                                      .shared_memory = name == "arena",
                                      .seconds = seconds_for_each})[0]
      .seconds;
}

void run(char** arguments, int count) {
  const bool encrypt = std::string(arguments[1]) == "tls";
  Group group = Group::connect({.transport = encrypt ? "tcp" : arguments[1],
                                .rank = std::stoi(arguments[2]),
                                .size = std::stoi(arguments[3]),
                                .address = arguments[4],
                                .token = "bench",
                                .encrypt = encrypt});
  // mpirun binds its ranks to cores; the system spreads ours after a few tenths of a second.
  if (group.transport() == "shm") measure(group, "arena", 16 << 20);
  for (int i = 6; i < count; ++i)
    for (const std::string& name : split(arguments[5], ',')) {
      const size_t bytes = std::stoul(arguments[i]);
      const Clock::time_point begin = Clock::now();
      const std::clock_t used = std::clock();
      const double seconds = measure(group, name, bytes);
      const double cores = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC /
                           seconds_between(begin, Clock::now());
      if (group.rank() == 0)
        fmt::print("{0} {1} {2:.9f}\n{0}.cores {1} {3:.3f}\n", name, bytes, seconds, cores);
    }
}

}  // namespace
}  // namespace artel::comm

int main(int argc, char** argv) {
  if (argc < 7) {
    fmt::print(stderr, "usage: artel_bench_comm TRANSPORT RANK SIZE ADDRESS CASE,... BYTES...\n");
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
