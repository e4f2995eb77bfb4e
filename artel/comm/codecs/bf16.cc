// bf16: the upper half of a float, rounded to nearest even. The range of a float with 8 bits of
// precision.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/bf16.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include "artel/comm/codecs/block_codec.h"
#include "artel/comm/codecs/brain_float.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

void narrow_to_bf16(const float* HWY_RESTRICT values, std::byte* HWY_RESTRICT codes) {
  for (size_t i = 0; i < kCodecBlock; ++i) store_at(codes, i, brain_float_of(values[i]));
}

void add_bf16(const std::byte* HWY_RESTRICT codes, float scale, float* HWY_RESTRICT sum) {
  for (size_t i = 0; i < kCodecBlock; ++i)
    sum[i] += scale * float_of_brain_float(load_at<uint16_t>(codes, i));
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(narrow_to_bf16);
HWY_EXPORT(add_bf16);

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

std::unique_ptr<Codec> make_bf16() { return std::make_unique<BlockCodec<HalfFormat<Bf16>>>(); }

}  // namespace artel::comm
#endif
