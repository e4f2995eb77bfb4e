#include "artel/exec/kernels/convert.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/kernels/convert.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Plain loops without branches, which the compiler vectorises for each target: the hardware's own
// conversions would not give the same bits everywhere (NaN payloads).
HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

void float_to_half_range(const float* __restrict x, uint16_t* __restrict y, int64_t begin,
                         int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t magnitude = bits & 0x7fffffffu;
    // Adding 0.5 rounds subnormal halves at the right bit.
    const uint32_t subnormal =
        std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    y[i] = static_cast<uint16_t>(half | (bits >> 16 & 0x8000u));
  }
}

void half_to_float_range(const uint16_t* __restrict x, float* __restrict y, int64_t begin,
                         int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t bits = x[i];
    const uint32_t shifted = (bits & 0x7fffu) << 13;
    // The product moves the exponent's bias and makes subnormal halves normal.
    const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted) * 0x1p112f);
    const uint32_t magnitude = shifted >= 0x0f800000u ? shifted | 0x7f800000u : finite;
    y[i] = std::bit_cast<float>(magnitude | (bits & 0x8000u) << 16);
  }
}

void float_to_bfloat16_range(const float* __restrict x, uint16_t* __restrict y, int64_t begin,
                             int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    y[i] = static_cast<uint16_t>(nan ? bits >> 16 | 0x40u : rounded);
  }
}

void bfloat16_to_float_range(const uint16_t* __restrict x, float* __restrict y, int64_t begin,
                             int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    y[i] = std::bit_cast<float>(static_cast<uint32_t>(x[i]) << 16);
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {
namespace {

constexpr int64_t kGrain = 16384;

template <typename From, typename To>
void convert(ThreadPool& pool, int64_t n, void (*range)(const From*, To*, int64_t, int64_t),
             const From* x, To* y) {
  parallel_for(pool, n, kGrain, [=](int64_t begin, int64_t end) { range(x, y, begin, end); });
}

}  // namespace

HWY_EXPORT(float_to_half_range);
HWY_EXPORT(half_to_float_range);
HWY_EXPORT(float_to_bfloat16_range);
HWY_EXPORT(bfloat16_to_float_range);

void float_to_half(ThreadPool& pool, int64_t n, const float* x, uint16_t* y) {
  convert(pool, n, HWY_DYNAMIC_DISPATCH(float_to_half_range), x, y);
}

void half_to_float(ThreadPool& pool, int64_t n, const uint16_t* x, float* y) {
  convert(pool, n, HWY_DYNAMIC_DISPATCH(half_to_float_range), x, y);
}

void float_to_bfloat16(ThreadPool& pool, int64_t n, const float* x, uint16_t* y) {
  convert(pool, n, HWY_DYNAMIC_DISPATCH(float_to_bfloat16_range), x, y);
}

void bfloat16_to_float(ThreadPool& pool, int64_t n, const uint16_t* x, float* y) {
  convert(pool, n, HWY_DYNAMIC_DISPATCH(bfloat16_to_float_range), x, y);
}

}  // namespace artel::kernels
#endif
