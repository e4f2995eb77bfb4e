#include <algorithm>
#include <cmath>

#include "artel/exec/cpu/rows/norm.h"
#include "artel/exec/cpu/rows/norm_arguments.h"
#include "artel/exec/cpu/rows/row_chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/batch_norm.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Sums of x - pivot and of its square. The pivot (the first row) keeps the squares small, so that
// the variance loses nothing to a large mean.
void moments_chunk(const float* x, int64_t begin, int64_t end, int64_t channels, double* totals) {
  sum_rows<2>(begin, end, channels, totals,
              [=](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                const auto value =
                    hn::Sub(hn::LoadU(d, x + row * channels + column), hn::LoadU(d, x + column));
                sums[0] = hn::Add(sums[0], value);
                sums[1] = hn::MulAdd(value, value, sums[1]);
              });
}

template <class D>
HWY_INLINE hn::Vec<D> positive(D d, hn::Vec<D> v) {
  return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v);
}

template <bool kRelu, bool kResidual>
HWY_INLINE void forward_range(const BatchNormForward& a, int64_t begin, int64_t end) {
  for_each_row(begin, end, a.channels, [&](auto d, int64_t column) HWY_ATTR {
    const auto mean = hn::LoadU(d, a.mean + column);
    const auto scale = hn::LoadU(d, a.scale + column);
    const auto beta = hn::LoadU(d, a.beta + column);
    return [&a, d, column, mean, scale, beta](int64_t row) HWY_ATTR {
      const int64_t i = row * a.channels + column;
      auto v = hn::MulAdd(hn::Sub(hn::LoadU(d, a.x + i), mean), scale, beta);
      if constexpr (kResidual) v = hn::Add(v, hn::LoadU(d, a.residual + i));
      hn::StoreU(kRelu ? positive(d, v) : v, d, a.y + i);
    };
  });
}

void forward_rows(const BatchNormForward& a, int64_t begin, int64_t end) {
  if (a.relu) {
    a.residual ? forward_range<true, true>(a, begin, end)
               : forward_range<true, false>(a, begin, end);
  } else {
    a.residual ? forward_range<false, true>(a, begin, end)
               : forward_range<false, false>(a, begin, end);
  }
}

// The gradient before the relu, for element i; `centered` is x - mean.
enum class Mask { none, result, recomputed };

template <Mask kMask, class D>
HWY_INLINE hn::Vec<D> masked_gradient(D d, const BatchNormBackward& a, int64_t i, int64_t column,
                                      hn::Vec<D> centered) {
  const auto dy = hn::LoadU(d, a.dy + i);
  if constexpr (kMask == Mask::none) return dy;
  if constexpr (kMask == Mask::result)
    return hn::IfThenElseZero(hn::Gt(hn::LoadU(d, a.y + i), hn::Zero(d)), dy);
  const auto result =
      hn::MulAdd(centered, hn::LoadU(d, a.scale + column), hn::LoadU(d, a.beta + column));
  return hn::IfThenElseZero(hn::Gt(result, hn::Zero(d)), dy);
}

// Sums of the gradient and of gradient * (x - mean); writes dresidual on the way.
template <Mask kMask, bool kResidual>
HWY_INLINE void sum_gradients(const BatchNormBackward& a, int64_t begin, int64_t end,
                              double* totals) {
  sum_rows<2>(begin, end, a.channels, totals,
              [&](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                const int64_t i = row * a.channels + column;
                const auto centered = hn::Sub(hn::LoadU(d, a.x + i), hn::LoadU(d, a.mean + column));
                const auto gradient = masked_gradient<kMask>(d, a, i, column, centered);
                if constexpr (kResidual) hn::StoreU(gradient, d, a.dresidual + i);
                sums[0] = hn::Add(sums[0], gradient);
                sums[1] = hn::MulAdd(gradient, centered, sums[1]);
              });
}

void gradients_chunk(const BatchNormBackward& a, int64_t begin, int64_t end, double* totals) {
  if (!a.relu) {
    a.dresidual ? sum_gradients<Mask::none, true>(a, begin, end, totals)
                : sum_gradients<Mask::none, false>(a, begin, end, totals);
  } else if (a.dresidual) {
    sum_gradients<Mask::result, true>(a, begin, end, totals);
  } else {
    a.y ? sum_gradients<Mask::result, false>(a, begin, end, totals)
        : sum_gradients<Mask::recomputed, false>(a, begin, end, totals);
  }
}

template <Mask kMask>
HWY_INLINE void backward_range(const BatchNormBackward& a, int64_t begin, int64_t end) {
  for_each_row(begin, end, a.channels, [&](auto d, int64_t column) HWY_ATTR {
    const auto mean = hn::LoadU(d, a.mean + column);
    const auto scale = hn::LoadU(d, a.scale + column);
    const auto slope = hn::LoadU(d, a.slope + column);
    const auto shift = hn::LoadU(d, a.shift + column);
    return [&a, d, column, mean, scale, slope, shift](int64_t row) HWY_ATTR {
      const int64_t i = row * a.channels + column;
      const auto centered = hn::Sub(hn::LoadU(d, a.x + i), mean);
      const auto gradient = masked_gradient<kMask>(d, a, i, column, centered);
      hn::StoreU(hn::MulAdd(gradient, scale, hn::MulAdd(centered, slope, shift)), d, a.dx + i);
    };
  });
}

void backward_rows(const BatchNormBackward& a, int64_t begin, int64_t end) {
  if (!a.relu) {
    backward_range<Mask::none>(a, begin, end);
  } else {
    a.y ? backward_range<Mask::result>(a, begin, end)
        : backward_range<Mask::recomputed>(a, begin, end);
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(moments_chunk);
HWY_EXPORT(forward_rows);
HWY_EXPORT(gradients_chunk);
HWY_EXPORT(backward_rows);

namespace {

// Vectors of one float for each channel that a call needs besides the partial sums.
constexpr int64_t kChannelVectors = 4;

int64_t row_grain(int64_t columns) { return 4 * std::max<int64_t>(1, 4096 / (columns + 1)); }

float* channel_vectors(int64_t rows, int64_t channels, void* workspace) {
  return reinterpret_cast<float*>(static_cast<char*>(workspace) +
                                  RowChunks(rows).workspace_bytes(channels, 2));
}

// Puts a vector of `value` at `storage` where the caller gave none.
const float* or_constant(const float* given, float value, int64_t channels, float* storage) {
  if (given) return given;
  std::fill_n(storage, channels, value);
  return storage;
}

void forward(ThreadPool& pool, int64_t rows, const BatchNormForward& arguments) {
  const auto range = HWY_DYNAMIC_DISPATCH(forward_rows);
  parallel_for(pool, rows, row_grain(arguments.channels),
               [&](int64_t begin, int64_t end) { range(arguments, begin, end); });
}

}  // namespace

int64_t norm_workspace_bytes(int64_t rows, int64_t channels) {
  return RowChunks(rows).workspace_bytes(channels, 2) +
         kChannelVectors * channels * static_cast<int64_t>(sizeof(float));
}

void batch_norm_training(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                         int64_t channels, const float* x, const float* gamma, const float* beta,
                         const float* residual, float* y, float* mean, float* inv_std,
                         float* variance, void* workspace) {
  if (rows == 0) {
    std::fill_n(mean, channels, 0.0f);
    std::fill_n(inv_std, channels, 1.0f / std::sqrt(options.epsilon));
    if (variance) std::fill_n(variance, channels, 0.0f);
    return;
  }
  float* scale = channel_vectors(rows, channels, workspace);
  float* zeros = scale + channels;
  double* offset = static_cast<double*>(workspace);  // the first chunk's sums, once added up
  const auto chunk = HWY_DYNAMIC_DISPATCH(moments_chunk);
  const double n = static_cast<double>(rows);
  RowChunks(rows).sum(
      pool, 2 * channels, workspace,
      [&](int64_t begin, int64_t end, double* totals) { chunk(x, begin, end, channels, totals); },
      [&](int64_t i, double total) {
        if (i < channels) {
          offset[i] = total / n;
          mean[i] = static_cast<float>(x[i] + offset[i]);
          return;
        }
        const int64_t c = i - channels;
        const double spread = std::max(0.0, total / n - offset[c] * offset[c]);
        if (variance) variance[c] = static_cast<float>(spread);
        inv_std[c] = static_cast<float>(1 / std::sqrt(spread + options.epsilon));
        scale[c] = (gamma ? gamma[c] : 1.0f) * inv_std[c];
      });
  forward(
      pool, rows,
      {channels, options.relu, x, mean, scale, or_constant(beta, 0, channels, zeros), residual, y});
}

void batch_norm_backward(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                         int64_t channels, const float* dy, const float* x, const float* y,
                         const float* gamma, const float* beta, const float* mean,
                         const float* inv_std, float* dx, float* dgamma, float* dbeta,
                         float* dresidual, void* workspace) {
  float* scale = channel_vectors(rows, channels, workspace);
  float* slope = scale + channels;
  float* shift = slope + channels;
  for (int64_t c = 0; c < channels; ++c) scale[c] = (gamma ? gamma[c] : 1.0f) * inv_std[c];
  BatchNormBackward arguments = {
      channels,  options.relu, dy,    x,
      y,         mean,         scale, or_constant(beta, 0, channels, shift + channels),
      dresidual, slope,        shift, dx};

  const auto chunk = HWY_DYNAMIC_DISPATCH(gradients_chunk);
  const double n = static_cast<double>(rows);
  RowChunks(rows).sum(
      pool, 2 * channels, workspace,
      [&](int64_t begin, int64_t end, double* totals) { chunk(arguments, begin, end, totals); },
      [&](int64_t i, double total) {
        if (i < channels) {
          if (dbeta) dbeta[i] = static_cast<float>(total);
          shift[i] = static_cast<float>(-scale[i] * total / n);
          return;
        }
        const int64_t c = i - channels;
        if (dgamma) dgamma[c] = static_cast<float>(total * inv_std[c]);
        slope[c] = static_cast<float>(-scale[c] * total * inv_std[c] * inv_std[c] / n);
      });
  if (!dx) return;
  if (dresidual) {  // already masked
    arguments.dy = dresidual;
    arguments.relu = false;
  }
  const auto range = HWY_DYNAMIC_DISPATCH(backward_rows);
  parallel_for(pool, rows, row_grain(channels),
               [&](int64_t begin, int64_t end) { range(arguments, begin, end); });
}

void batch_norm_inference(ThreadPool& pool, const BatchNormOptions& options, int64_t rows,
                          int64_t channels, const float* x, const float* gamma, const float* beta,
                          const float* residual, const float* running_mean,
                          const float* running_variance, float* y, void* workspace) {
  float* scale = channel_vectors(rows, channels, workspace);
  for (int64_t c = 0; c < channels; ++c)
    scale[c] = (gamma ? gamma[c] : 1.0f) / std::sqrt(running_variance[c] + options.epsilon);
  forward(pool, rows,
          {channels, options.relu, x, running_mean, scale,
           or_constant(beta, 0, channels, scale + channels), residual, y});
}

}  // namespace artel::kernels
#endif
