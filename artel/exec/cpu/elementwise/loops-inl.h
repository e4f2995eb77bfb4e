// Loops over vectors with a tail, for use inside HWY_NAMESPACE. Tail elements go through the same
// operations one by one, so an element's bits do not depend on where a range begins.
#if defined(ARTEL_EXEC_KERNELS_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ARTEL_EXEC_KERNELS_LOOPS_INL_H_
#undef ARTEL_EXEC_KERNELS_LOOPS_INL_H_
#else
#define ARTEL_EXEC_KERNELS_LOOPS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FullTag = hn::ScalableTag<float>;
using FourTag = hn::CappedTag<float, 4>;
using OneTag = hn::CappedTag<float, 1>;

// The first `count` lanes, which `inside` marks, from there; zeros after them. Below AVX2, and on
// ARM, Highway's masked load needs aligned memory or reads beyond the last of them.
HWY_INLINE hn::Vec<FullTag> load_first(hn::Mask<FullTag> inside, const float* at, int64_t count) {
  const FullTag d;
#if HWY_TARGET <= HWY_AVX2
  (void)count;
  return hn::MaskedLoad(inside, d, at);
#else
  (void)inside;
  HWY_ALIGN float values[HWY_LANES(float)] = {};
  for (int64_t j = 0; j < count; ++j) values[j] = at[j];
  return hn::Load(d, values);
#endif
}

// body(d, i) for the elements [0, n): d is a vector tag, i the first element of the vector.
template <class Body>
HWY_INLINE void for_each_vector(int64_t n, const Body& body) {
  const FullTag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + width <= n; i += width) body(d, i);
  if (hn::Lanes(FourTag()) == 4 && i + 4 <= n) {
    body(FourTag(), i);
    i += 4;
  }
  for (; i < n; ++i) body(OneTag(), i);
}

// Folds body(d, i) over [0, n) by `combine`, in four chains to hide its latency. `identity` is the
// neutral element, `across` folds the lanes of one vector.
template <class Body, class Combine, class Across>
HWY_INLINE float fold(int64_t n, float identity, const Body& body, const Combine& combine,
                      const Across& across) {
  const FullTag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  auto a0 = hn::Set(d, identity), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    a0 = combine(a0, body(d, i));
    a1 = combine(a1, body(d, i + width));
    a2 = combine(a2, body(d, i + 2 * width));
    a3 = combine(a3, body(d, i + 3 * width));
  }
  for (; i + width <= n; i += width) a0 = combine(a0, body(d, i));
  const OneTag one;
  auto rest = hn::Set(one, identity);
  for (; i < n; ++i) rest = combine(rest, body(one, i));
  const float lanes = hn::GetLane(across(d, combine(combine(a0, a1), combine(a2, a3))));
  return hn::GetLane(combine(hn::Set(one, lanes), rest));
}

template <class Body>
HWY_INLINE float fold_sum(int64_t n, const Body& body) {
  return fold(
      n, 0.0f, body, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); },
      [](auto d, auto v) HWY_ATTR { return hn::SumOfLanes(d, v); });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
