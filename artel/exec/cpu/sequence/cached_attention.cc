#include "artel/exec/cpu/sequence/cached_attention.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/exec/cpu/sequence/attention_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/sequence/cached_attention.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// scores[i] = scale * (q row i) for rows that lie `stride` apart.
void row_products(const float* q, const float* rows, int64_t stride, int64_t count, int64_t width,
                  float scale, float* scores) {
  for (int64_t i = 0; i < count; ++i) {
    const float* row = rows + i * stride;
    scores[i] = scale * fold_sum(width, [=](auto d, int64_t c) HWY_ATTR {
                  return hn::Mul(hn::LoadU(d, q + c), hn::LoadU(d, row + c));
                });
  }
}

// y = the sum of weights[i] * row i.
void weighted_rows(const float* weights, const float* rows, int64_t stride, int64_t count,
                   int64_t width, float* y) {
  std::fill_n(y, width, 0.0f);
  int64_t i = 0;
  const auto add_rows = [&](auto rows_at_once) HWY_ATTR {
    constexpr int64_t kRows = decltype(rows_at_once)::value;
    for (; i + kRows <= count; i += kRows)
      for_each_vector(width, [&](auto d, int64_t c) HWY_ATTR {
        auto sum = hn::LoadU(d, y + c);
        for (int64_t r = 0; r < kRows; ++r)
          sum = hn::MulAdd(hn::Set(d, weights[i + r]), hn::LoadU(d, rows + (i + r) * stride + c),
                           sum);
        hn::StoreU(sum, d, y + c);
      });
  };
  add_rows(std::integral_constant<int64_t, 8>());
  add_rows(std::integral_constant<int64_t, 1>());
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(row_products);
HWY_EXPORT(weighted_rows);

size_t CachedAttention::workspace_bytes() const {
  return static_cast<size_t>(shape_.heads * shape_.positions) * sizeof(float);
}

void CachedAttention::run(ThreadPool& pool, const float* qkv, float* cache, int64_t first, float* y,
                          std::byte* workspace) const {
  const int64_t heads = shape_.heads, tokens = shape_.tokens;
  const int64_t positions = shape_.positions, width = shape_.width(), key_width = shape_.key_width;
  require(first >= 0 && first + tokens <= positions, ErrorKind::invalid_argument,
          "[cached_attention] tokens: got places {} to {}, expected at most {}", first,
          first + tokens - 1, positions - 1);
  float *keys = cache, *values = cache + positions * key_width;
  const int64_t row_width = width + 2 * key_width;
  for (int64_t i = 0; i < tokens; ++i) {
    const float* row = qkv + i * row_width + width;
    std::copy_n(row, key_width, keys + (first + i) * key_width);
    std::copy_n(row + key_width, key_width, values + (first + i) * key_width);
  }
  const auto products = HWY_DYNAMIC_DISPATCH(row_products);
  const auto weighted = HWY_DYNAMIC_DISPATCH(weighted_rows);
  const int64_t part = shape_.head_width(), sharing = heads / shape_.key_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(part));
  pool.run(heads, [&](int64_t head) {
    float* scores = reinterpret_cast<float*>(workspace) + head * positions;
    const int64_t begin = head * part, key = head / sharing * part;
    for (int64_t i = 0; i < tokens; ++i) {
      const int64_t seen = first + i + 1;
      float inverse_sum;
      products(qkv + i * row_width + begin, keys + key, key_width, seen, part, scale, scores);
      exponentials(scores, seen, seen, &inverse_sum);
      weighted(scores, values + key, key_width, seen, part, y + i * width + begin);
      scale_row(y + i * width + begin, part, inverse_sum);
    }
  });
}

}  // namespace artel::kernels
#endif
