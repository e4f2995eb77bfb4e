// Reductions over any set of axes.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

enum class ReduceOp : uint8_t { sum, mean, max, min };

// Immutable after construction. The output is dense, in the order of the axes that stay. An empty
// reduction gives 0 (sum), NaN (mean) or the infinity that loses (max, min). NaN wins everywhere.
class ReduceKernel {
 public:
  // `strides` of the input in elements; `reduced[i]` says whether axis i is folded.
  ReduceKernel(ReduceOp op, const std::vector<int64_t>& extents,
               const std::vector<int64_t>& strides, const std::vector<bool>& reduced);

  int64_t workspace_bytes() const;  // often 0
  void run(ThreadPool& pool, const float* x, float* y, void* workspace) const;

 private:
  struct Axis {
    int64_t extent, stride;
  };
  // rows: each output folds adjacent elements. columns: adjacent outputs fold elements at a
  // stride. column_chunks: the same, few outputs of many terms. general: all else.
  enum class Path : uint8_t { rows, columns, column_chunks, general };

  static void append(std::vector<Axis>& axes, Axis axis);
  static int64_t offset(const std::vector<Axis>& axes, int64_t index);
  Path choose_path() const;
  void run_rows(ThreadPool& pool, const float* x, float* y) const;
  void run_columns(ThreadPool& pool, const float* x, float* y) const;
  void run_general(ThreadPool& pool, const float* x, float* y) const;

  ReduceOp op_;
  std::vector<Axis> kept_, reduced_;  // neighbours merged, extents of 1 dropped, outermost first
  int64_t outputs_ = 1, terms_ = 1;
  Path path_ = Path::general;
};

// Bytes for the functions below.
int64_t column_sum_workspace_bytes(int64_t rows, int64_t columns);

// db[c] = sum over rows of dy[r][c].
void bias_gradient(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy, float* db,
                   void* workspace);

// dz = dy * slope; db = the column sums of dz; in one pass. `dz` may be `dy`.
void slope_bias_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                         const float* slope, float* dz, float* db, void* workspace);

// dz = dy where y > 0, else 0; db = the column sums of dz; in one pass. `dz` may be `dy`.
void relu_bias_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                        const float* y, float* dz, float* db, void* workspace);

}  // namespace artel::kernels
