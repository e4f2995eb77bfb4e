// A counter in shared memory that processes can wait on: a short spin, a few yields, then sleep.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "artel/base/relax.h"
#include "artel/base/time.h"

namespace artel::comm::shm {

// Zeroed memory is a valid event.
struct alignas(64) Event {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Durations of spinning before sleeping. A pause is about 20 ns, a yield about 1 us.
struct Spin {
  int pauses;
  int yields;

  // With more ranks than cores, the awaited rank needs this core, so do not spin.
  static Spin for_ranks(bool crowded) { return crowded ? Spin{0, 100} : Spin{2000, 20}; }
};

// A yield that takes longer than this shows that the core is busy. The rank then sleeps instead,
// because it would get the core back only after 40 ms.
constexpr double kYieldSeconds = 0.004;

inline void wake(Event& event) {
  syscall(SYS_futex, &event.value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

inline void ring(Event& event) {
  event.value.fetch_add(1);
  if (event.sleepers.load() != 0) wake(event);
}

// Waits until arrived(value), at most about `seconds()` of sleep; returns whether it has.
template <typename Arrived, typename Seconds>
bool await(Event& event, Spin spin, Arrived&& arrived, Seconds&& seconds) {
  for (int i = 0; i < spin.pauses; ++i) {
    if (arrived(event.value.load(std::memory_order_acquire))) return true;
    relax();
  }
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < spin.yields; ++i) {
    if (arrived(event.value.load(std::memory_order_acquire))) return true;
    sched_yield();
    if (seconds_between(begin, Clock::now()) > kYieldSeconds) break;
  }
  const double limit = seconds();
  const timespec time{static_cast<time_t>(limit),
                      static_cast<long>((limit - static_cast<time_t>(limit)) * 1e9)};
  event.sleepers.fetch_add(1);
  const uint32_t seen = event.value.load();
  bool done = arrived(seen);
  if (!done) {
    syscall(SYS_futex, &event.value, FUTEX_WAIT, seen, &time, nullptr, 0);
    done = arrived(event.value.load(std::memory_order_acquire));
  }
  event.sleepers.fetch_sub(1);
  return done;
}

// True if a counter that may wrap around has reached `wanted`.
inline bool reached(uint32_t value, uint32_t wanted) {
  return static_cast<int32_t>(value - wanted) >= 0;
}

}  // namespace artel::comm::shm
