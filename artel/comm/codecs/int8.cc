// int8: one byte per value, one scale per block, rounded up or down at random so that the expected
// error is zero (QSGD, Alistarh et al. 2017).
//
// The random numbers are those of artel::philox, 16 bits per value. 32 counters run side by side;
// word w of counter j serves the values (2 w) 32 + j and (2 w + 1) 32 + j of the block, so vectors
// of any width read neighbours and give the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/int8.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "artel/base/random.h"
#include "artel/comm/codecs/block_codec.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kCounters = 32;
static_assert(kCounters * 8 == kCodecBlock);

using Words = hn::CappedTag<uint32_t, kCounters>;
using Vector = hn::Vec<Words>;
constexpr Words kWords;

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void philox_vectors(uint64_t key, uint64_t first, Vector (&c)[4]) {
  const auto block = philox(key, first, 0);
  for (size_t w = 0; w < 4; ++w) c[w] = hn::Set(kWords, block[w]);
}
#else
struct Product {
  Vector high, low;
};

// The 64-bit products with a constant, in two halves.
HWY_INLINE Product multiply(Vector a, uint32_t factor) {
  const hn::Repartition<uint64_t, Words> wide;
  const Vector b = hn::Set(kWords, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return {hn::OddEven(hn::BitCast(kWords, odd), hn::BitCast(kWords, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(kWords, hn::ShiftLeft<32>(odd)), hn::BitCast(kWords, even))};
}

// artel::philox(key, first + lane, 0) in each lane. As `first` is a multiple of the lanes, no
// counter carries into its upper word.
HWY_INLINE void philox_vectors(uint64_t key, uint64_t first, Vector (&c)[4]) {
  c[0] = hn::Iota(kWords, static_cast<uint32_t>(first));
  c[1] = hn::Set(kWords, static_cast<uint32_t>(first >> 32));
  c[2] = c[3] = hn::Zero(kWords);
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Product p0 = multiply(c[0], 0xD2511F53u);
    const Product p1 = multiply(c[2], 0xCD9E8D57u);
    c[0] = hn::Xor(hn::Xor(p1.high, c[1]), hn::Set(kWords, k0));
    c[1] = p1.low;
    c[2] = hn::Xor(hn::Xor(p0.high, c[3]), hn::Set(kWords, k1));
    c[3] = p0.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}
#endif

// Word w of artel::philox(key, first + j, 0) as words[w][j].
HWY_INLINE void random_words(uint64_t key, uint64_t first, uint32_t (&words)[4][kCounters]) {
  for (size_t j = 0; j < kCounters; j += hn::Lanes(kWords)) {
    Vector vectors[4];
    philox_vectors(key, first + j, vectors);
    for (size_t w = 0; w < 4; ++w) hn::StoreU(vectors[w], kWords, words[w] + j);
  }
}

HWY_INLINE float largest_magnitude(const float* values) {
  uint32_t largest = 0;  // as integers: a NaN is larger than any number
  for (size_t i = 0; i < kCodecBlock; ++i)
    largest = std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  return std::bit_cast<float>(largest);
}

// codes = floor(values * inverse + u) + 128, with u in (0, 1) made of the lower 16 bits of a word.
HWY_INLINE void round_at_random(const float* HWY_RESTRICT values,
                                const uint32_t* HWY_RESTRICT words, int shift, float inverse,
                                std::byte* HWY_RESTRICT codes) {
  for (size_t j = 0; j < kCounters; ++j) {
    const auto random = static_cast<int32_t>(words[j] >> shift & 0xffffu);
    const float u = static_cast<float>(random) * 0x1p-16f + (128.0f + 0x1p-17f);
    const auto code = static_cast<int32_t>(values[j] * inverse + u);
    codes[j] = static_cast<std::byte>(std::min(code, 255));
  }
}

float quantise(uint64_t key, uint64_t block, const float* HWY_RESTRICT values,
               std::byte* HWY_RESTRICT codes) {
  constexpr float kSmallest = 0x1p-110f;      // the inverse of the scale must be finite,
  constexpr float kLargestScale = 0x1p+120f;  // and so must 127 times the scale
  const float largest = largest_magnitude(values);
  if (!(largest >= kSmallest && largest <= std::numeric_limits<float>::max())) {
    std::fill_n(codes, kCodecBlock, std::byte{128});
    return largest < kSmallest ? 0.0f : largest;
  }
  const float inverse = 127.0f / largest;
  uint32_t words[4][kCounters];
  random_words(key, block * kCounters, words);
  for (size_t group = 0; group < 8; ++group)
    round_at_random(values + group * kCounters, words[group / 2], group % 2 == 0 ? 0 : 16, inverse,
                    codes + group * kCounters);
  return std::min(largest / 127.0f, kLargestScale);
}

void dequantise(const std::byte* HWY_RESTRICT codes, float scale, float* HWY_RESTRICT sum) {
  for (size_t i = 0; i < kCodecBlock; ++i)
    sum[i] += scale * static_cast<float>(std::to_integer<int>(codes[i]) - 128);
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(quantise);
HWY_EXPORT(dequantise);

struct Int8 {
  static constexpr const char* kName = "int8";
  static constexpr bool kScaled = true;
  static constexpr size_t kBlockBytes = kCodecBlock;
  static size_t bytes(size_t count) { return count; }
  static float encode(uint64_t key, size_t block, const float* values, size_t, std::byte* codes) {
    return HWY_DYNAMIC_DISPATCH(quantise)(key, block, values, codes);
  }
  static void add(const std::byte* codes, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(dequantise)(codes, scale, sum);
  }
};

}  // namespace

CodecDefinition int8_codec() {
  return {.name = "int8", .make = [](auto) { return std::make_unique<BlockCodec<Int8>>(); }};
}

}  // namespace artel::comm
#endif
