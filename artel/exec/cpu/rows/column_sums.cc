#include "artel/exec/cpu/rows/reduce.h"
#include "artel/exec/cpu/rows/row_chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/column_sums.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

void sum_chunk(const float* dy, int64_t begin, int64_t end, int64_t columns, double* totals) {
  sum_rows<1>(begin, end, columns, totals,
              [=](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                sums[0] = hn::Add(sums[0], hn::LoadU(d, dy + row * columns + column));
              });
}

void relu_bias_chunk(const float* dy, const float* y, float* dz, int64_t begin, int64_t end,
                     int64_t columns, double* totals) {
  sum_rows<1>(begin, end, columns, totals,
              [=](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                const int64_t i = row * columns + column;
                const auto on = hn::Gt(hn::LoadU(d, y + i), hn::Zero(d));
                const auto gradient = hn::IfThenElseZero(on, hn::LoadU(d, dy + i));
                hn::StoreU(gradient, d, dz + i);
                sums[0] = hn::Add(sums[0], gradient);
              });
}

void slope_bias_chunk(const float* dy, const float* slope, float* dz, int64_t begin, int64_t end,
                      int64_t columns, double* totals) {
  sum_rows<1>(begin, end, columns, totals,
              [=](auto d, int64_t row, int64_t column, auto* sums) HWY_ATTR {
                const int64_t i = row * columns + column;
                const auto gradient = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, slope + i));
                hn::StoreU(gradient, d, dz + i);
                sums[0] = hn::Add(sums[0], gradient);
              });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(sum_chunk);
HWY_EXPORT(relu_bias_chunk);
HWY_EXPORT(slope_bias_chunk);

int64_t column_sum_workspace_bytes(int64_t rows, int64_t columns) {
  return RowChunks(rows).workspace_bytes(columns, 1);
}

void bias_gradient(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy, float* db,
                   void* workspace) {
  const auto chunk = HWY_DYNAMIC_DISPATCH(sum_chunk);
  RowChunks(rows).sum(
      pool, columns, workspace,
      [&](int64_t begin, int64_t end, double* totals) { chunk(dy, begin, end, columns, totals); },
      [&](int64_t column, double total) { db[column] = static_cast<float>(total); });
}

namespace {

// One of the two chunk functions above over all rows.
template <typename Chunk>
void bias_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                   const float* other, float* dz, float* db, void* workspace, const Chunk& chunk) {
  RowChunks(rows).sum(
      pool, columns, workspace,
      [&](int64_t begin, int64_t end, double* totals) {
        chunk(dy, other, dz, begin, end, columns, totals);
      },
      [&](int64_t column, double total) { db[column] = static_cast<float>(total); });
}

}  // namespace

void relu_bias_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                        const float* y, float* dz, float* db, void* workspace) {
  bias_backward(pool, rows, columns, dy, y, dz, db, workspace,
                HWY_DYNAMIC_DISPATCH(relu_bias_chunk));
}

void slope_bias_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                         const float* slope, float* dz, float* db, void* workspace) {
  bias_backward(pool, rows, columns, dy, slope, dz, db, workspace,
                HWY_DYNAMIC_DISPATCH(slope_bias_chunk));
}

}  // namespace artel::kernels
#endif
