// Two bytes a value, rounded to nearest even. The conversions are written out, because the
// instructions and Highway's replacements for older machines differ in subnormals and rounding.
//
// fp16 is IEEE half precision: values beyond 65504 are sent as that, and error feedback carries the
// rest. Codecs that send single values as bf16, such as top-k, round them by base/bfloat16.h; a
// test compares the two.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/half.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <cstring>

#include "artel/comm/codecs/block_codec.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
constexpr Floats kFloats;
constexpr Integers kIntegers;
constexpr Halves kHalves;

HWY_INLINE hn::Vec<Integers> all(int32_t value) { return hn::Set(kIntegers, value); }

// A format converts magnitudes: floats below infinity to halves, and halves to floats.
struct Fp16 {
  static constexpr int32_t kInfinity = 0x7c00, kNan = 0x7e00;

  static HWY_INLINE hn::Vec<Integers> narrow(hn::Vec<Integers> magnitude) {
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), all(1));
    const auto rebiased = hn::Add(hn::Add(magnitude, odd), all(0xfff - (112 << 23)));
    const auto normal = hn::Min(hn::ShiftRight<13>(rebiased), all(kInfinity - 1));
    // Below 2^-14, the sum with 0.5 has the unit of a subnormal half as its own last bit.
    const auto shifted = hn::Add(hn::BitCast(kFloats, magnitude), hn::Set(kFloats, 0.5f));
    const auto subnormal = hn::Sub(hn::BitCast(kIntegers, shifted), all(0x3f000000));
    return hn::IfThenElse(hn::Lt(magnitude, all(0x38800000)), subnormal, normal);
  }

  static HWY_INLINE hn::Vec<Integers> widen(hn::Vec<Integers> half) {
    const auto bias = hn::IfThenElse(hn::Lt(half, all(kInfinity)), all(112 << 23), all(224 << 23));
    const auto normal = hn::Add(hn::ShiftLeft<13>(half), bias);
    const auto subnormal = hn::Mul(hn::ConvertTo(kFloats, half), hn::Set(kFloats, 0x1p-24f));
    return hn::IfThenElse(hn::Lt(half, all(0x400)), hn::BitCast(kIntegers, subnormal), normal);
  }
};

struct Bf16 {
  static constexpr int32_t kInfinity = 0x7f80, kNan = 0x7fc0;

  static HWY_INLINE hn::Vec<Integers> narrow(hn::Vec<Integers> magnitude) {
    const auto odd = hn::And(hn::ShiftRight<16>(magnitude), all(1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, odd), all(0x7fff)));
    return hn::Min(rounded, all(kInfinity - 1));
  }

  static HWY_INLINE hn::Vec<Integers> widen(hn::Vec<Integers> half) {
    return hn::ShiftLeft<16>(half);
  }
};

template <typename Format>
HWY_INLINE hn::Vec<Halves> halves_of(hn::Vec<Floats> values) {
  const auto bits = hn::BitCast(kIntegers, values);
  const auto magnitude = hn::And(bits, all(0x7fffffff));
  const auto infinity = all(0x7f800000);
  const auto special =
      hn::IfThenElse(hn::Gt(magnitude, infinity), all(Format::kNan), all(Format::kInfinity));
  const auto half = hn::IfThenElse(hn::Lt(magnitude, infinity), Format::narrow(magnitude), special);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), all(0x8000));
  return hn::DemoteTo(kHalves, hn::Or(half, sign));
}

template <typename Format>
HWY_INLINE hn::Vec<Floats> floats_of(hn::Vec<Halves> halves) {
  const auto half = hn::PromoteTo(kIntegers, halves);
  const auto sign = hn::ShiftLeft<16>(hn::And(half, all(0x8000)));
  return hn::BitCast(kFloats, hn::Or(Format::widen(hn::And(half, all(0x7fff))), sign));
}

// Through aligned buffers, as codes may lie at any address.
template <typename Format>
void narrow(const float* values, std::byte* codes) {
  HWY_ALIGN uint16_t halves[kCodecBlock];
  for (size_t i = 0; i < kCodecBlock; i += hn::Lanes(kFloats))
    hn::Store(halves_of<Format>(hn::LoadU(kFloats, values + i)), kHalves, halves + i);
  std::memcpy(codes, halves, sizeof(halves));
}

template <typename Format>
void add(const std::byte* codes, float scale, float* sum) {
  HWY_ALIGN uint16_t halves[kCodecBlock];
  std::memcpy(halves, codes, sizeof(halves));
  for (size_t i = 0; i < kCodecBlock; i += hn::Lanes(kFloats)) {
    const auto decoded = floats_of<Format>(hn::Load(kHalves, halves + i));
    const auto total = hn::MulAdd(hn::Set(kFloats, scale), decoded, hn::LoadU(kFloats, sum + i));
    hn::StoreU(total, kFloats, sum + i);
  }
}

void narrow_to_fp16(const float* values, std::byte* codes) { narrow<Fp16>(values, codes); }
void narrow_to_bf16(const float* values, std::byte* codes) { narrow<Bf16>(values, codes); }
void add_fp16(const std::byte* codes, float scale, float* sum) { add<Fp16>(codes, scale, sum); }
void add_bf16(const std::byte* codes, float scale, float* sum) { add<Bf16>(codes, scale, sum); }

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(narrow_to_fp16);
HWY_EXPORT(narrow_to_bf16);
HWY_EXPORT(add_fp16);
HWY_EXPORT(add_bf16);

struct Fp16 {
  static constexpr const char* kName = "fp16";
  static void narrow(const float* values, std::byte* codes) {
    HWY_DYNAMIC_DISPATCH(narrow_to_fp16)(values, codes);
  }
  static void add(const std::byte* codes, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(add_fp16)(codes, scale, sum);
  }
};

struct Bf16 {
  static constexpr const char* kName = "bf16";
  static void narrow(const float* values, std::byte* codes) {
    HWY_DYNAMIC_DISPATCH(narrow_to_bf16)(values, codes);
  }
  static void add(const std::byte* codes, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(add_bf16)(codes, scale, sum);
  }
};

}  // namespace

CodecDefinition fp16_codec() {
  return {.name = "fp16",
          .make = [](auto) { return std::make_unique<BlockCodec<HalfFormat<Fp16>>>(); }};
}
CodecDefinition bf16_codec() {
  return {.name = "bf16",
          .make = [](auto) { return std::make_unique<BlockCodec<HalfFormat<Bf16>>>(); }};
}

}  // namespace artel::comm
#endif
