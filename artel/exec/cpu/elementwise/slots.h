// Work for a pool whose parts need scratch memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// Calls body(slot, i) once for each i in [0, count), 0 <= slot < slots. Calls with equal slots
// never overlap, so each slot may own a piece of the workspace. The assignment of i to slots is
// arbitrary, so results must not depend on it.
inline void for_each_with_slot(ThreadPool& pool, int slots, int64_t count,
                               const std::function<void(int64_t slot, int64_t i)>& body) {
  std::atomic<int64_t> next{0};
  pool.run(std::min<int64_t>(slots, count), [&](int64_t slot) {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(slot, i);
  });
}

// For a of any sign and positive b.
inline int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Floats from one buffer to the next that lies an odd number of cache lines further, so that the
// two do not compete for the same cache sets.
inline int64_t odd_lines(int64_t floats) {
  constexpr int64_t kLine = 16;
  return (floats + kLine - 1) / (2 * kLine) * (2 * kLine) + kLine;
}

// Rounds a number of floats up to whole cache lines, so that the next buffer is aligned too.
inline int64_t aligned_floats(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace artel::kernels
