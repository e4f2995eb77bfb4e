// bf16: the upper half of a float, rounded to nearest even. The range of a float with 8 bits of
// precision.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/bf16.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include "artel/comm/codecs/brain_float.h"
#include "artel/comm/codecs/half_codec.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/unaligned.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

void narrow_to_bf16(const float* HWY_RESTRICT values, size_t count, std::byte* HWY_RESTRICT out) {
  for (size_t i = 0; i < count; ++i) store_at(out, i, brain_float_of(values[i]));
}

void add_bf16(const std::byte* HWY_RESTRICT in, size_t count, float scale,
              float* HWY_RESTRICT sum) {
  for (size_t i = 0; i < count; ++i)
    sum[i] += scale * float_of_brain_float(load_at<uint16_t>(in, i));
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
  static void narrow(const float* values, size_t count, std::byte* out) {
    HWY_DYNAMIC_DISPATCH(narrow_to_bf16)(values, count, out);
  }
  static void add_wide(const std::byte* in, size_t count, float scale, float* sum) {
    HWY_DYNAMIC_DISPATCH(add_bf16)(in, count, scale, sum);
  }
};

}  // namespace

std::unique_ptr<Codec> make_bf16() { return std::make_unique<HalfCodec<Bf16>>(); }

}  // namespace artel::comm
#endif
