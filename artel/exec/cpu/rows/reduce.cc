#include "artel/exec/cpu/rows/reduce.h"

#include <algorithm>
#include <array>
#include <limits>

#include "artel/base/error.h"
#include "artel/exec/cpu/rows/row_chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/reduce.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Blocks are folded in single precision and added in double.
double sum_adjacent(const float* x, int64_t n) {
  constexpr int64_t kBlock = 1024;
  double total = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    const float* block = x + first;
    total += fold_sum(std::min(kBlock, n - first),
                      [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, block + i); });
  }
  return total;
}

float largest_adjacent(const float* x, int64_t n, float sign) {
  const auto nan_or_max = [](auto a, auto b) HWY_ATTR {
    const auto larger = hn::IfThenElse(hn::Lt(a, b), b, a);  // a if it is NaN
    return hn::IfThenElse(hn::IsNaN(b), b, larger);
  };
  const float result = fold(
      n, -std::numeric_limits<float>::infinity(),
      [=](auto d, int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, x + i), hn::Set(d, sign)); },
      nan_or_max,
      [](auto d, auto v) HWY_ATTR {
        const auto nan = hn::SumOfLanes(d, hn::IfThenElseZero(hn::IsNaN(v), v));
        return hn::IfThenElse(hn::IsNaN(nan), nan, hn::MaxOfLanes(d, v));
      });
  return sign * result;
}

// totals[c] += the sum of x[row * stride + c] over the rows.
void sum_columns(const float* x, int64_t rows, int64_t stride, int64_t columns, double* totals) {
  sum_rows<1>(0, rows, columns, totals,
              [=](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                sums[0] = hn::Add(sums[0], hn::LoadU(d, x + row * stride + column));
              });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(sum_adjacent);
HWY_EXPORT(largest_adjacent);
HWY_EXPORT(sum_columns);

namespace {

constexpr int64_t kGrain = 16384;     // elements that are worth a thread
constexpr int64_t kTile = 128;        // columns summed by one task
constexpr int64_t kSumBlock = 16384;  // unit of the chunks of a sum of everything

bool is_sum(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::mean; }

}  // namespace

ReduceKernel::ReduceKernel(ReduceOp op, const std::vector<int64_t>& extents,
                           const std::vector<int64_t>& strides, const std::vector<bool>& reduced)
    : op_(op) {
  require(strides.size() == extents.size() && reduced.size() == extents.size(), ErrorKind::internal,
          "[reduce] axes: got {} strides and {} flags, expected {}", strides.size(), reduced.size(),
          extents.size());
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    append(reduced[axis] ? reduced_ : kept_, {extents[axis], strides[axis]});
    (reduced[axis] ? terms_ : outputs_) *= extents[axis];
  }
  path_ = choose_path();
}

void ReduceKernel::append(std::vector<Axis>& axes, Axis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && axes.back().stride == axis.stride * axis.extent) {
    axes.back() = {axes.back().extent * axis.extent, axis.stride};
  } else {
    axes.push_back(axis);
  }
}

int64_t ReduceKernel::offset(const std::vector<Axis>& axes, int64_t index) {
  int64_t result = 0;
  for (size_t axis = axes.size(); axis-- > 0; index /= axes[axis].extent)
    result += index % axes[axis].extent * axes[axis].stride;
  return result;
}

ReduceKernel::Path ReduceKernel::choose_path() const {
  if (terms_ == 0 || outputs_ == 0 || reduced_.size() != 1) return Path::general;
  if (reduced_[0].stride == 1) return Path::rows;
  if (!is_sum(op_) || kept_.empty() || kept_.back().stride != 1) return Path::general;
  const bool dense = kept_.size() == 1 && reduced_[0].stride == outputs_;
  return dense && outputs_ <= 8 * kTile ? Path::column_chunks : Path::columns;
}

int64_t ReduceKernel::workspace_bytes() const {
  return path_ == Path::column_chunks ? column_sum_workspace_bytes(terms_, outputs_) : 0;
}

void ReduceKernel::run(ThreadPool& pool, const float* x, float* y, void* workspace) const {
  switch (path_) {
    case Path::rows:
      run_rows(pool, x, y);
      break;
    case Path::columns:
      run_columns(pool, x, y);
      break;
    case Path::column_chunks:
      bias_gradient(pool, terms_, outputs_, x, y, workspace);
      break;
    case Path::general:
      run_general(pool, x, y);
      break;
  }
  if (op_ == ReduceOp::mean) {
    for (int64_t i = 0; i < outputs_; ++i) y[i] /= static_cast<float>(terms_);
  }
}

void ReduceKernel::run_rows(ThreadPool& pool, const float* x, float* y) const {
  const auto sum = HWY_DYNAMIC_DISPATCH(sum_adjacent);
  const auto largest = HWY_DYNAMIC_DISPATCH(largest_adjacent);
  if (outputs_ == 1 && is_sum(op_)) {
    std::array<double, RowChunks::kMaxChunks> partial;
    const int64_t blocks = (terms_ + kSumBlock - 1) / kSumBlock;
    RowChunks(blocks).sum(
        pool, 1, partial.data(),
        [&](int64_t begin, int64_t end, double* total) {
          const int64_t first = begin * kSumBlock;
          *total = sum(x + first, std::min(terms_, end * kSumBlock) - first);
        },
        [&](int64_t, double total) { *y = static_cast<float>(total); });
    return;
  }
  parallel_for(pool, outputs_, std::max<int64_t>(1, kGrain / terms_),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const float* row = x + offset(kept_, i);
                   y[i] = is_sum(op_) ? static_cast<float>(sum(row, terms_))
                                      : largest(row, terms_, op_ == ReduceOp::max ? 1.0f : -1.0f);
                 }
               });
}

void ReduceKernel::run_columns(ThreadPool& pool, const float* x, float* y) const {
  const auto sum = HWY_DYNAMIC_DISPATCH(sum_columns);
  const int64_t columns = kept_.back().extent, tiles = (columns + kTile - 1) / kTile;
  pool.run(outputs_ / columns * tiles, [&](int64_t task) {
    const int64_t first = task / tiles * columns + task % tiles * kTile;
    const int64_t width = std::min(kTile, columns - task % tiles * kTile);
    std::array<double, kTile> totals{};
    sum(x + offset(kept_, first), terms_, reduced_[0].stride, width, totals.data());
    for (int64_t c = 0; c < width; ++c) y[first + c] = static_cast<float>(totals[c]);
  });
}

void ReduceKernel::run_general(ThreadPool& pool, const float* x, float* y) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double identity = is_sum(op_) ? 0.0 : op_ == ReduceOp::max ? -kInfinity : kInfinity;
  const auto fold = [&](double total, double value) {
    if (is_sum(op_)) return total + value;
    const bool wins = op_ == ReduceOp::max ? value > total : value < total;
    return wins || value != value ? value : total;
  };
  parallel_for(pool, outputs_, std::max<int64_t>(1, kGrain / (terms_ + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t from = offset(kept_, i);
                   double total = identity;
                   for (int64_t term = 0; term < terms_; ++term)
                     total = fold(total, x[from + offset(reduced_, term)]);
                   y[i] = static_cast<float>(total);
                 }
               });
}

}  // namespace artel::kernels
#endif
