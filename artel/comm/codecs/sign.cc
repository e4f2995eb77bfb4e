// sign: one bit per value and the mean magnitude of each block (1-bit SGD, Seide et al. 2014;
// signSGD with error feedback, Karimireddy et al. 2019). Bit k of byte j is the sign of value 32 k
// + j of the block, so vectors of any width read neighbours.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/sign.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "artel/comm/codecs/block_codec.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

constexpr size_t kSignBytes = kCodecBlock / 8;

// Returns the sum of the magnitudes, each divided by the block's size so that it cannot overflow.
float pack_signs(const float* HWY_RESTRICT values, std::byte* HWY_RESTRICT codes) {
  float sums[kSignBytes] = {};
  uint32_t bits[kSignBytes] = {};
  for (size_t k = 0; k < 8; ++k)
    for (size_t j = 0; j < kSignBytes; ++j) {
      const float value = values[k * kSignBytes + j];
      sums[j] += std::fabs(value) * (1.0f / kCodecBlock);
      bits[j] |= std::bit_cast<uint32_t>(value) >> 31 << k;
    }
  for (size_t j = 0; j < kSignBytes; ++j) codes[j] = static_cast<std::byte>(bits[j]);
  for (size_t half = kSignBytes / 2; half > 0; half /= 2)
    for (size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

void add_signs(const std::byte* HWY_RESTRICT codes, float scale, float* HWY_RESTRICT sum) {
  const auto bits = std::bit_cast<uint32_t>(scale);
  for (size_t k = 0; k < 8; ++k)
    for (size_t j = 0; j < kSignBytes; ++j) {
      const uint32_t sign = std::to_integer<uint32_t>(codes[j]) >> k << 31;
      sum[k * kSignBytes + j] += std::bit_cast<float>(bits ^ sign);
    }
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(pack_signs);
HWY_EXPORT(add_signs);

struct Sign {
  static constexpr const char* kName = "sign";
  static constexpr bool kScaled = true;
  static constexpr size_t kBlockBytes = kCodecBlock / 8;
  static size_t bytes(size_t count) { return std::min(count, kBlockBytes); }
  static float encode(uint64_t, size_t, const float* values, size_t count, std::byte* codes) {
    constexpr float kLargest = std::numeric_limits<float>::max();
    const float part = static_cast<float>(kCodecBlock) / static_cast<float>(count);
    const float sum = HWY_DYNAMIC_DISPATCH(pack_signs)(values, codes);
    // The mean of finite values is finite, however it is rounded.
    return sum <= kLargest ? std::min(sum * part, kLargest) : sum;
  }
  static void add(const std::byte* codes, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(add_signs)(codes, scale, sum);
  }
};

}  // namespace

CodecDefinition sign_codec() {
  return {.name = "sign", .make = [](auto) { return std::make_unique<BlockCodec<Sign>>(); }};
}

}  // namespace artel::comm
#endif
