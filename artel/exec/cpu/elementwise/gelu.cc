#include "artel/exec/cpu/elementwise/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/elementwise/gelu.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/element_math-inl.h"
#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

void GeluInPlace(Gelu kind, float* x, float* slope, int64_t n) {
  const auto apply = [=](const auto& gelu) HWY_ATTR {
    for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
      const auto at = gelu(d, hn::LoadU(d, x + i));
      hn::StoreU(at.value, d, x + i);
      if (slope) hn::StoreU(at.slope, d, slope + i);
    });
  };
  if (kind == Gelu::exact) {
    apply([](auto d, auto v) HWY_ATTR { return gelu_exact(d, v); });
  } else {
    apply([](auto d, auto v) HWY_ATTR { return gelu_tanh(d, v); });
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(GeluInPlace);

void gelu_in_place(Gelu kind, float* x, float* slope, int64_t n) {
  HWY_DYNAMIC_DISPATCH(GeluInPlace)(kind, x, slope, n);
}

}  // namespace artel::kernels
#endif
