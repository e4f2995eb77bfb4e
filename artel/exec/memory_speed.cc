#include "artel/exec/memory_speed.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "artel/base/time.h"

namespace artel {

double measure_memory_speed(ThreadPool& pool, int threads) {
  constexpr int64_t kWords = int64_t{64} << 20;
  constexpr int kPasses = 8;
  const std::vector<uint64_t> memory(kWords, 1);
  std::vector<uint64_t> sums(static_cast<size_t>(threads));
  double best = 0;
  volatile uint64_t result = 0;  // so that the compiler leaves nothing out
  for (int pass = 0; pass < kPasses; ++pass) {
    const Clock::time_point begin = Clock::now();
    pool.run(threads, [&](int64_t part) {
      sums[part] = std::accumulate(memory.data() + kWords * part / threads,
                                   memory.data() + kWords * (part + 1) / threads, uint64_t{0});
    });
    best = std::max(best, 8.0 * static_cast<double>(kWords) / seconds_between(begin, Clock::now()));
    result = result + sums[0];
  }
  return best;
}

}  // namespace artel
