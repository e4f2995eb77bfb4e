#include "artel/exec/cpu/elementwise/dropout.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/elementwise/dropout.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// More than the compiler unrolls before it vectorises.
constexpr int64_t kCounters = 32;

// The words of `philox` (artel/base/random.h) for kCounters counters from `first`, in order: plain
// loops of a fixed length, which the compiler vectorises.
HWY_INLINE void philox_words(uint64_t key, uint64_t first, uint32_t* __restrict words) {
  uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
  for (int64_t i = 0; i < kCounters; ++i) {
    c0[i] = static_cast<uint32_t>(first + i);
    c1[i] = static_cast<uint32_t>((first + i) >> 32);
    c2[i] = c3[i] = 0;
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t i = 0; i < kCounters; ++i) {
      const uint64_t p0 = 0xD2511F53ull * c0[i];
      const uint64_t p1 = 0xCD9E8D57ull * c2[i];
      c0[i] = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
      c1[i] = static_cast<uint32_t>(p1);
      c2[i] = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c3[i] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int64_t i = 0; i < kCounters; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

// The elements [begin, end), which have the numbers from `number` on.
void dropout_range(uint64_t key, int32_t threshold, float scale, const float* x, float* y,
                   int64_t begin, int64_t end, int64_t number) {
  constexpr int64_t kBlock = 4 * kCounters;
  uint32_t words[kBlock];
  const int64_t skipped = number % 4;  // words of the first counter that belong to others
  int64_t count = kBlock - skipped;
  for (int64_t i = begin; i < end; i += count, count = kBlock) {
    const int64_t first = i == begin ? skipped : 0;
    philox_words(key, static_cast<uint64_t>(number + i - begin - first) / 4, words);
    for_each_vector(std::min(count, end - i), [&](auto d, int64_t j) HWY_ATTR {
      const hn::Rebind<int32_t, decltype(d)> di;
      const hn::Rebind<uint32_t, decltype(d)> du;
      const auto number = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + first + j)));
      const auto dropped = hn::RebindMask(d, hn::Lt(number, hn::Set(di, threshold)));
      const auto kept = hn::Mul(hn::LoadU(d, x + i + j), hn::Set(d, scale));
      hn::StoreU(hn::IfThenZeroElse(dropped, kept), d, y + i + j);
    });
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(dropout_range);

namespace {

struct Rule {
  int32_t threshold;  // Random::uniform() is (word >> 8) / 2^24; words below it are dropped
  float scale;        // of the others

  explicit Rule(float probability) : scale(probability < 1 ? 1.0f / (1.0f - probability) : 0.0f) {
    require(probability >= 0 && probability <= 1, ErrorKind::invalid_argument,
            "[dropout] probability: got {}, expected 0 to 1", probability);
    threshold = static_cast<int32_t>(std::ceil(probability * 0x1p24));
  }
};

}  // namespace

void dropout(ThreadPool& pool, uint64_t key, float probability, int64_t n, const float* x,
             float* y) {
  const Rule rule(probability);
  const auto range = HWY_DYNAMIC_DISPATCH(dropout_range);
  parallel_for(pool, n, 4096, [&](int64_t begin, int64_t end) {
    range(key, rule.threshold, rule.scale, x, y, begin, end, begin);
  });
}

void dropout(ThreadPool& pool, uint64_t key, float probability, const DropoutRows& part,
             const float* x, float* y) {
  const Rule rule(probability);
  const auto range = HWY_DYNAMIC_DISPATCH(dropout_range);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, part.n));
  parallel_for(pool, part.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      range(key, rule.threshold, rule.scale, x, y, row * part.n, (row + 1) * part.n,
            row * part.all + part.first);
  });
}

void dropout_row(uint64_t key, float probability, int64_t n, float* x) {
  const Rule rule(probability);
  HWY_DYNAMIC_DISPATCH(dropout_range)(key, rule.threshold, rule.scale, x, x, 0, n, 0);
}

}  // namespace artel::kernels
#endif
