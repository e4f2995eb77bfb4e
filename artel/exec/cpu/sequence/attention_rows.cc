#include "artel/exec/cpu/sequence/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/sequence/attention_rows.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

LogSum Exponentials(float* scores, int64_t seen, int64_t columns, float* inverse_sum) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float largest = row_max(seen, scores);
  if (largest == -kInfinity) {
    std::fill(scores, scores + columns, 0.0f);
    *inverse_sum = 0;
    return {kInfinity, 0};
  }
  const float sum = fold_sum(seen, [=](auto d, int64_t i) HWY_ATTR {
    const auto e = exp(d, hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, largest)));
    hn::StoreU(e, d, scores + i);
    return e;
  });
  std::fill(scores + seen, scores + columns, 0.0f);
  *inverse_sum = 1.0f / sum;
  return {largest, std::log(sum)};
}

void ScoreGradients(float* scores, float* products, int64_t seen, int64_t columns,
                    const LogSum& log_sum, float scale) {
  const float mean = fold_sum(seen, [=](auto d, int64_t i) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, log_sum.largest));
    const auto p = exp(d, hn::Sub(distance, hn::Set(d, log_sum.rest)));
    hn::StoreU(p, d, scores + i);
    return hn::Mul(p, hn::LoadU(d, products + i));
  });
  for_each_vector(seen, [=](auto d, int64_t i) HWY_ATTR {
    const auto p = hn::Mul(hn::LoadU(d, scores + i), hn::Set(d, scale));
    const auto rest = hn::Sub(hn::LoadU(d, products + i), hn::Set(d, mean));
    hn::StoreU(hn::Mul(p, rest), d, products + i);
  });
  std::fill(scores + seen, scores + columns, 0.0f);
  std::fill(products + seen, products + columns, 0.0f);
}

void ScaleRow(float* x, int64_t n, float factor) {
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(Exponentials);
HWY_EXPORT(ScoreGradients);
HWY_EXPORT(ScaleRow);

LogSum exponentials(float* scores, int64_t seen, int64_t columns, float* inverse_sum) {
  return HWY_DYNAMIC_DISPATCH(Exponentials)(scores, seen, columns, inverse_sum);
}

void score_gradients(float* scores, float* products, int64_t seen, int64_t columns,
                     const LogSum& log_sum, float scale) {
  HWY_DYNAMIC_DISPATCH(ScoreGradients)(scores, products, seen, columns, log_sum, scale);
}

void scale_row(float* x, int64_t n, float factor) { HWY_DYNAMIC_DISPATCH(ScaleRow)(x, n, factor); }

}  // namespace artel::kernels
#endif
