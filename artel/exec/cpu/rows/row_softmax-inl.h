// Common code of softmax and cross-entropy, for use inside HWY_NAMESPACE.
#if defined(ARTEL_EXEC_KERNELS_ROW_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARTEL_EXEC_KERNELS_ROW_SOFTMAX_INL_H_
#undef ARTEL_EXEC_KERNELS_ROW_SOFTMAX_INL_H_
#else
#define ARTEL_EXEC_KERNELS_ROW_SOFTMAX_INL_H_
#endif

#include <cmath>
#include <limits>

#include "artel/exec/cpu/elementwise/element_math-inl.h"
#include "artel/exec/cpu/elementwise/loops-inl.h"
#include "artel/exec/cpu/rows/log_sum.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

HWY_INLINE float row_max(int64_t n, const float* x) {
  return fold(
      n, -std::numeric_limits<float>::infinity(),
      [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); },
      [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
      [](auto d, auto v) HWY_ATTR { return hn::MaxOfLanes(d, v); });
}

HWY_INLINE LogSum row_log_sum(int64_t n, const float* x) {
  const float largest = row_max(n, x);
  const float sum = fold_sum(n, [=](auto d, int64_t i) HWY_ATTR {
    return exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest)));
  });
  return {largest, std::log(sum)};
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
