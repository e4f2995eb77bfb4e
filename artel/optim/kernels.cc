#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/optim/kernels.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "artel/optim/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace artel::optim::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Float = hn::ScalableTag<float>;
using Vector = hn::Vec<Float>;
constexpr Float kFloat;

HWY_INLINE Vector fill(float value) { return hn::Set(kFloat, value); }

// Uses comparisons instead of Min and Max, to preserve NaN.
HWY_INLINE Vector filtered(Vector gradient, const GradientFilter& filter) {
  gradient = hn::Mul(gradient, fill(filter.scale));
  if (filter.limit == 0) return gradient;
  const Vector high = fill(filter.limit), low = fill(-filter.limit);
  gradient = hn::IfThenElse(hn::Gt(gradient, high), high, gradient);
  return hn::IfThenElse(hn::Lt(gradient, low), low, gradient);
}

// Calls rule(parameter, gradient, slots) for each vector of the range, with references to values
// that are loaded before and stored after the call. The last elements are processed in padded
// copies, by the same instructions as the others. Range and rule are passed by value, so that the
// compiler can keep them in registers.
template <size_t kSlots, typename Rule>
HWY_INLINE void sweep(const Range range, const Rule rule) {
  const size_t lanes = hn::Lanes(kFloat);
  const auto step = [&](float* parameter, const float* gradient, const std::array<float*, 3>& slots)
                        HWY_ATTR {
                          Vector p = hn::LoadU(kFloat, parameter);
                          const Vector g = filtered(hn::LoadU(kFloat, gradient), range.filter);
                          Vector s[kSlots + 1];  // one more, because an array cannot be empty
                          for (size_t k = 0; k < kSlots; ++k) s[k] = hn::LoadU(kFloat, slots[k]);
                          rule(p, g, s);
                          hn::StoreU(p, kFloat, parameter);
                          for (size_t k = 0; k < kSlots; ++k) hn::StoreU(s[k], kFloat, slots[k]);
                        };
  size_t i = 0;
  for (; i + lanes <= range.elements; i += lanes) {
    std::array<float*, 3> slots = {};
    for (size_t k = 0; k < kSlots; ++k) slots[k] = range.slots[k] + i;
    step(range.parameter + i, range.gradient + i, slots);
  }
  if (i == range.elements) return;
  const size_t rest = range.elements - i;
  float copies[2 + kSlots][HWY_MAX_BYTES / sizeof(float)] = {};
  std::array<float*, 3> slots = {};
  std::copy_n(range.parameter + i, rest, copies[0]);
  std::copy_n(range.gradient + i, rest, copies[1]);
  for (size_t k = 0; k < kSlots; ++k) {
    slots[k] = copies[2 + k];
    std::copy_n(range.slots[k] + i, rest, slots[k]);
  }
  step(copies[0], copies[1], slots);
  std::copy_n(copies[0], rest, range.parameter + i);
  for (size_t k = 0; k < kSlots; ++k) std::copy_n(slots[k], rest, range.slots[k] + i);
}

void Sgd(const SgdStep& step, const Range& range) {
  sweep<0>(range, [step](Vector& p, Vector g, Vector*) HWY_ATTR {
    g = hn::MulAdd(fill(step.decay), p, g);
    p = hn::NegMulAdd(fill(step.rate), g, p);
  });
}

void Momentum(const MomentumStep& step, const Range& range) {
  sweep<1>(range, [step](Vector& p, Vector g, Vector* s) HWY_ATTR {
    g = hn::MulAdd(fill(step.decay), p, g);
    s[0] = hn::MulAdd(fill(step.fresh), g, hn::Mul(fill(step.momentum), s[0]));
    const Vector direction = step.nesterov ? hn::MulAdd(fill(step.momentum), s[0], g) : s[0];
    p = hn::NegMulAdd(fill(step.rate), direction, p);
  });
}

void Adagrad(const AdagradStep& step, const Range& range) {
  sweep<1>(range, [step](Vector& p, Vector g, Vector* s) HWY_ATTR {
    g = hn::MulAdd(fill(step.decay), p, g);
    s[0] = hn::MulAdd(g, g, s[0]);
    const Vector direction = hn::Div(g, hn::Add(hn::Sqrt(s[0]), fill(step.epsilon)));
    p = hn::NegMulAdd(fill(step.rate), direction, p);
  });
}

template <bool kCentered, bool kMomentum>
void rmsprop_sweep(const RmsPropStep& step, const Range& range) {
  sweep<1 + kCentered + kMomentum>(range, [step](Vector& p, Vector g, Vector* s) HWY_ATTR {
    const Vector old = fill(step.smoothing), fresh = fill(1 - step.smoothing);
    g = hn::MulAdd(fill(step.decay), p, g);
    s[0] = hn::MulAdd(hn::Mul(fresh, g), g, hn::Mul(old, s[0]));
    Vector square = s[0];
    if constexpr (kCentered) {
      s[1] = hn::MulAdd(fresh, g, hn::Mul(old, s[1]));
      square = hn::NegMulAdd(s[1], s[1], square);
      square = hn::IfThenElse(hn::Lt(square, fill(0)), fill(0), square);  // a variance that rounded
    }
    Vector direction = hn::Div(g, hn::Add(hn::Sqrt(square), fill(step.epsilon)));
    if constexpr (kMomentum) {
      Vector& buffer = s[1 + kCentered];
      direction = buffer = hn::MulAdd(fill(step.momentum), buffer, direction);
    }
    p = hn::NegMulAdd(fill(step.rate), direction, p);
  });
}

void RmsProp(const RmsPropStep& step, const Range& range) {
  if (step.centered && step.momentum > 0) return rmsprop_sweep<true, true>(step, range);
  if (step.centered) return rmsprop_sweep<true, false>(step, range);
  if (step.momentum > 0) return rmsprop_sweep<false, true>(step, range);
  rmsprop_sweep<false, false>(step, range);
}

// Updates both moments with a gradient.
HWY_INLINE void update_moments(const Moments& moments, Vector g, Vector* s) {
  s[0] = hn::MulAdd(fill(1 - moments.beta1), g, hn::Mul(fill(moments.beta1), s[0]));
  s[1] = hn::MulAdd(hn::Mul(fill(1 - moments.beta2), g), g, hn::Mul(fill(moments.beta2), s[1]));
}

// The bias-corrected first moment divided by the root of the bias-corrected second moment.
HWY_INLINE Vector direction_of(const Moments& moments, const Vector* s) {
  const Vector root = hn::MulAdd(fill(moments.correction2), hn::Sqrt(s[1]), fill(moments.epsilon));
  return hn::Div(hn::Mul(fill(moments.correction1), s[0]), root);
}

void Adam(const AdamStep& step, const Range& range) {
  sweep<2>(range, [step](Vector& p, Vector g, Vector* s) HWY_ATTR {
    g = hn::MulAdd(fill(step.decay), p, g);
    update_moments(step.moments, g, s);
    p = hn::NegMulAdd(fill(step.rate), direction_of(step.moments, s), hn::Mul(fill(step.keep), p));
  });
}

Norms LambMoments(const LambStep& step, const Range& range) {
  Vector parameter = hn::Zero(kFloat), direction = hn::Zero(kFloat);
  sweep<2>(range, [step, &parameter, &direction](Vector& p, Vector g, Vector* s) HWY_ATTR {
    update_moments(step.moments, g, s);
    const Vector u = hn::MulAdd(fill(step.decay), p, direction_of(step.moments, s));
    parameter = hn::MulAdd(p, p, parameter);
    direction = hn::MulAdd(u, u, direction);
  });
  return {hn::GetLane(hn::SumOfLanes(kFloat, parameter)),
          hn::GetLane(hn::SumOfLanes(kFloat, direction))};
}

void LambApply(const LambStep& step, float rate, const Range& range) {
  sweep<2>(range, [step, rate](Vector& p, Vector, Vector* s) HWY_ATTR {
    const Vector u = hn::MulAdd(fill(step.decay), p, direction_of(step.moments, s));
    p = hn::NegMulAdd(fill(rate), u, p);
  });
}

double Squares(const float* values, size_t count, GradientFilter filter) {
  const size_t lanes = hn::Lanes(kFloat);
  Vector sums[4] = {hn::Zero(kFloat), hn::Zero(kFloat), hn::Zero(kFloat), hn::Zero(kFloat)};
  const auto add = [&](Vector& sum, const float* at) HWY_ATTR {
    const Vector v = filtered(hn::LoadU(kFloat, at), filter);
    sum = hn::MulAdd(v, v, sum);
  };
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes)
    for (size_t k = 0; k < 4; ++k) add(sums[k], values + i + k * lanes);
  for (; i + lanes <= count; i += lanes) add(sums[0], values + i);
  if (i < count) {
    float rest[HWY_MAX_BYTES / sizeof(float)] = {};
    std::copy_n(values + i, count - i, rest);
    add(sums[1], rest);
  }
  const Vector sum = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(kFloat, sum));
}

}  // namespace HWY_NAMESPACE
}  // namespace artel::optim::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::optim::kernels {

HWY_EXPORT(Sgd);
HWY_EXPORT(Momentum);
HWY_EXPORT(Adagrad);
HWY_EXPORT(RmsProp);
HWY_EXPORT(Adam);
HWY_EXPORT(LambMoments);
HWY_EXPORT(LambApply);
HWY_EXPORT(Squares);

void sgd(const SgdStep& step, const Range& range) { HWY_DYNAMIC_DISPATCH(Sgd)(step, range); }

void momentum(const MomentumStep& step, const Range& range) {
  HWY_DYNAMIC_DISPATCH(Momentum)(step, range);
}

void adagrad(const AdagradStep& step, const Range& range) {
  HWY_DYNAMIC_DISPATCH(Adagrad)(step, range);
}

void rmsprop(const RmsPropStep& step, const Range& range) {
  HWY_DYNAMIC_DISPATCH(RmsProp)(step, range);
}

void adam(const AdamStep& step, const Range& range) { HWY_DYNAMIC_DISPATCH(Adam)(step, range); }

Norms lamb_moments(const LambStep& step, const Range& range) {
  return HWY_DYNAMIC_DISPATCH(LambMoments)(step, range);
}

void lamb_apply(const LambStep& step, float rate, const Range& range) {
  HWY_DYNAMIC_DISPATCH(LambApply)(step, rate, range);
}

double squares(const float* values, size_t count, GradientFilter filter) {
  const double fast = HWY_DYNAMIC_DISPATCH(Squares)(values, count, filter);
  if (std::isfinite(fast)) return fast;
  double sum = 0;  // of squares that overflow a float, as in exploding gradients
  for (size_t i = 0; i < count; ++i) {
    double value = values[i] * filter.scale;
    if (filter.limit != 0 && std::abs(value) > filter.limit) value = filter.limit;
    sum += value * value;
  }
  return sum;
}

}  // namespace artel::optim::kernels
#endif  // HWY_ONCE
