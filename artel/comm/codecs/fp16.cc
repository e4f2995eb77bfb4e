// fp16: IEEE half precision, rounded to nearest even. Values beyond 65504 are sent as that, and
// error feedback carries the rest. The conversions are written out, because the instructions and
// Highway's replacements for older machines differ in subnormals and rounding.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/fp16.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <bit>

#include "artel/comm/codecs/half_codec.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/unaligned.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

// Selections instead of branches, so that the loops below become vectors.
HWY_INLINE uint32_t half_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t odd = (magnitude >> 13) & 1u;
  const uint32_t normal =
      std::min((magnitude + 0xfffu + odd - (112u << 23)) >> 13, uint32_t{0x7bff});
  // Below 2^-14, the sum with 0.5 has the unit of a subnormal half as its own last bit.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  return (magnitude < 0x7f800000u ? finite : special) | (bits & 0x80000000u) >> 16;
}

HWY_INLINE float float_of(uint32_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t bias = magnitude < 0x7c00u ? 112u << 23 : 224u << 23;
  const float normal = std::bit_cast<float>((magnitude << 13) + bias);
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  const auto bits = std::bit_cast<uint32_t>(magnitude < 0x400u ? subnormal : normal);
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

void narrow_to_fp16(const float* HWY_RESTRICT values, size_t count, std::byte* HWY_RESTRICT out) {
  for (size_t i = 0; i < count; ++i) store_at(out, i, static_cast<uint16_t>(half_of(values[i])));
}

void add_fp16(const std::byte* HWY_RESTRICT in, size_t count, float scale,
              float* HWY_RESTRICT sum) {
  for (size_t i = 0; i < count; ++i) sum[i] += scale * float_of(load_at<uint16_t>(in, i));
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(narrow_to_fp16);
HWY_EXPORT(add_fp16);

struct Fp16 {
  static constexpr const char* kName = "fp16";
  static void narrow(const float* values, size_t count, std::byte* out) {
    HWY_DYNAMIC_DISPATCH(narrow_to_fp16)(values, count, out);
  }
  static void add_wide(const std::byte* in, size_t count, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(add_fp16)(in, count, scale, sum);
  }
};

}  // namespace

std::unique_ptr<Codec> make_fp16() { return std::make_unique<HalfCodec<Fp16>>(); }

}  // namespace artel::comm
#endif
