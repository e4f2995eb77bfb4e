// int8: a byte for each value, a scale for each block, rounded up or down at random so that the
// expected error is zero (QSGD, Alistarh et al. 2017).
//
// The random numbers are those of artel::philox, 16 bits for each value. 32 counters run side by
// side; word w of counter j serves the values (2 w) 32 + j and (2 w + 1) 32 + j of the block, so
// that vectors of any width read neighbours and give the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/int8.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "artel/comm/codecs/block_codec.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

constexpr size_t kCounters = 32;
static_assert(kCounters * 8 == kCodecBlock);

// Word w of artel::philox(key, first + j, 0) as words[w][j].
HWY_INLINE void random_words(uint64_t key, uint64_t first, uint32_t (&words)[4][kCounters]) {
  for (size_t j = 0; j < kCounters; ++j) {
    uint32_t c0 = static_cast<uint32_t>(first) + static_cast<uint32_t>(j);  // never carries
    uint32_t c1 = static_cast<uint32_t>(first >> 32);
    uint32_t c2 = 0, c3 = 0;
    auto k0 = static_cast<uint32_t>(key);
    auto k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
      c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      c1 = static_cast<uint32_t>(p1);
      c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c3 = static_cast<uint32_t>(p0);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    words[0][j] = c0;
    words[1][j] = c1;
    words[2][j] = c2;
    words[3][j] = c3;
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

std::unique_ptr<Codec> make_int8() { return std::make_unique<BlockCodec<Int8>>(); }

}  // namespace artel::comm
#endif
