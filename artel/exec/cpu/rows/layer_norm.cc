#include <algorithm>
#include <cmath>

#include "artel/exec/cpu/rows/norm.h"
#include "artel/exec/cpu/rows/norm_arguments.h"
#include "artel/exec/cpu/rows/row_chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/layer_norm.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> load_or(D d, const float* values, int64_t i, float otherwise) {
  return values ? hn::LoadU(d, values + i) : hn::Set(d, otherwise);
}

void forward_rows(const RowNormForward& a, int64_t begin, int64_t end) {
  const float n = static_cast<float>(a.columns);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.x + row * a.columns;
    float* y = a.y + row * a.columns;
    float mean = 0;
    if (a.mean) {
      mean =
          fold_sum(a.columns, [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }) / n;
      a.mean[row] = mean;
    }
    const float squares = fold_sum(a.columns, [=](auto d, int64_t i) HWY_ATTR {
      const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
      return hn::Mul(centered, centered);
    });
    const float inv_std = 1.0f / std::sqrt(squares / n + a.epsilon);
    a.inv_std[row] = inv_std;
    for_each_vector(a.columns, [&](auto d, int64_t i) HWY_ATTR {
      const auto centered = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
      const auto normal = hn::Mul(centered, hn::Set(d, inv_std));
      hn::StoreU(hn::MulAdd(normal, load_or(d, a.gamma, i, 1), load_or(d, a.beta, i, 0)), d, y + i);
    });
  }
}

// dx = inv_std * (g - mean(g) - normal * mean(g * normal)), g = dy * gamma, normal the normalised
// x.
void backward_row(const RowNormBackward& a, int64_t row) {
  const float* x = a.x + row * a.columns;
  const float* dy = a.dy + row * a.columns;
  float* dx = a.dx + row * a.columns;
  const float mean = a.mean ? a.mean[row] : 0.0f, inv_std = a.inv_std[row];
  const float n = static_cast<float>(a.columns);
  const auto scaled = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, dy + i), load_or(d, a.gamma, i, 1));
  };
  const auto normal = [&](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), hn::Set(d, inv_std));
  };
  const float along =
      fold_sum(a.columns,
               [&](auto d, int64_t i) HWY_ATTR { return hn::Mul(scaled(d, i), normal(d, i)); }) /
      n;
  const float average = a.mean ? fold_sum(a.columns, scaled) / n : 0.0f;
  for_each_vector(a.columns, [&](auto d, int64_t i) HWY_ATTR {
    const auto rest = hn::Sub(scaled(d, i), hn::Set(d, average));
    const auto value = hn::NegMulAdd(normal(d, i), hn::Set(d, along), rest);
    hn::StoreU(hn::Mul(value, hn::Set(d, inv_std)), d, dx + i);
  });
}

// Processes few rows at a time, which stay in the cache for their second use. Computes the sums
// first, because dx may overwrite dy. `totals` holds the sums of dy * normal, then the sums of dy.
void backward_chunk(const RowNormBackward& a, int64_t begin, int64_t end, double* totals) {
  constexpr int64_t kRows = 16;
  for (int64_t first = begin; first < end; first += kRows) {
    const int64_t last = std::min(end, first + kRows);
    if (a.sums) {
      sum_rows<2>(first, last, a.columns, totals,
                  [&](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                    const int64_t i = row * a.columns + column;
                    const auto mean = hn::Set(d, a.mean ? a.mean[row] : 0.0f);
                    const auto normal =
                        hn::Mul(hn::Sub(hn::LoadU(d, a.x + i), mean), hn::Set(d, a.inv_std[row]));
                    const auto dy = hn::LoadU(d, a.dy + i);
                    sums[0] = hn::MulAdd(dy, normal, sums[0]);
                    sums[1] = hn::Add(sums[1], dy);
                  });
    }
    for (int64_t row = first; row < last; ++row) backward_row(a, row);
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_chunk);

namespace {

void forward(ThreadPool& pool, int64_t rows, const RowNormForward& arguments) {
  const auto range = HWY_DYNAMIC_DISPATCH(forward_rows);
  const int64_t grain = std::max<int64_t>(1, 8192 / (arguments.columns + 1));
  parallel_for(pool, rows, grain,
               [&](int64_t begin, int64_t end) { range(arguments, begin, end); });
}

void backward(ThreadPool& pool, int64_t rows, const RowNormBackward& arguments, float* dgamma,
              float* dbeta, void* workspace) {
  const auto chunk = HWY_DYNAMIC_DISPATCH(backward_chunk);
  const int64_t columns = arguments.columns;
  RowChunks(rows).sum(
      pool, 2 * columns, workspace,
      [&](int64_t begin, int64_t end, double* totals) { chunk(arguments, begin, end, totals); },
      [&](int64_t i, double total) {
        if (i < columns) {
          if (dgamma) dgamma[i] = static_cast<float>(total);
        } else if (dbeta) {
          dbeta[i - columns] = static_cast<float>(total);
        }
      });
}

}  // namespace

void layer_norm(ThreadPool& pool, float epsilon, int64_t rows, int64_t columns, const float* x,
                const float* gamma, const float* beta, float* y, float* mean, float* inv_std) {
  forward(pool, rows, {epsilon, columns, x, gamma, beta, y, mean, inv_std});
}

void layer_norm_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                         const float* x, const float* gamma, const float* mean,
                         const float* inv_std, float* dx, float* dgamma, float* dbeta,
                         void* workspace) {
  backward(pool, rows, {columns, dy, x, gamma, mean, inv_std, dx, dgamma || dbeta}, dgamma, dbeta,
           workspace);
}

void rms_norm(ThreadPool& pool, float epsilon, int64_t rows, int64_t columns, const float* x,
              const float* gamma, float* y, float* inv_rms) {
  forward(pool, rows, {epsilon, columns, x, gamma, nullptr, y, nullptr, inv_rms});
}

void rms_norm_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                       const float* x, const float* gamma, const float* inv_rms, float* dx,
                       float* dgamma, void* workspace) {
  backward(pool, rows, {columns, dy, x, gamma, nullptr, inv_rms, dx, dgamma != nullptr}, dgamma,
           nullptr, workspace);
}

}  // namespace artel::kernels
#endif
