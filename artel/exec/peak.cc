#include "artel/exec/peak.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "artel/base/time.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/peak.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace artel::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Ten independent chains hide the latency of two units with five cycles each. They start with
// different numbers, so that the compiler cannot merge them. Returns the number of operations, and
// writes the sum to `sink`, so that no operation is optimised away.
double multiply_add(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999f), term = hn::Set(d, 0.001f);
  auto a = hn::Set(d, 1.0f), b = hn::Set(d, 1.1f), c = hn::Set(d, 1.2f), e = hn::Set(d, 1.3f),
       f = hn::Set(d, 1.4f), g = hn::Set(d, 1.5f), h = hn::Set(d, 1.6f), i = hn::Set(d, 1.7f),
       j = hn::Set(d, 1.8f), k = hn::Set(d, 1.9f);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, factor, term);
    b = hn::MulAdd(b, factor, term);
    c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term);
    f = hn::MulAdd(f, factor, term);
    g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term);
    i = hn::MulAdd(i, factor, term);
    j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)),
                           hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(j, k)));
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return static_cast<double>(rounds) * 10 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace artel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel {

HWY_EXPORT(multiply_add);

bool has_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;  // oneDNN 2.6 has no kernels for other processors
#endif
}

double measure_peak_flops() {
  constexpr int kTrials = 10;
  constexpr int64_t kRounds = 2'000'000;
  double best = 0;
  volatile float result = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    float sink = 0;
    const Clock::time_point begin = Clock::now();
    const double operations = HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sink);
    best = std::max(best, operations / seconds_between(begin, Clock::now()));
    result = sink;
  }
  static_cast<void>(result);
  return best;
}

double measure_sustained_flops(ThreadPool& pool, double seconds) {
  constexpr int64_t kRounds = 20'000;  // less than a millisecond
  std::atomic<double> operations = 0;
  const Clock::time_point begin = Clock::now();
  pool.run(pool.threads(), [&](int64_t) {
    volatile float result = 0;
    double own = 0;
    while (seconds_between(begin, Clock::now()) < seconds) {
      float sink = 0;
      own += HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sink);
      result = sink;
    }
    static_cast<void>(result);
    operations += own;
  });
  return operations / seconds_between(begin, Clock::now());
}

}  // namespace artel
#endif
