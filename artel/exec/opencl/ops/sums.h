// Column sums of matrices on an OpenCL device. The order is fixed: the rows of each chunk in order,
// then the chunks in order.
#pragma once

#include "artel/exec/opencl/device.h"

namespace artel::opencl {

// The term to sum for an element x of one matrix and, for some terms, the same element y of another
// one.
enum class Term {
  value = 0,       // x
  square = 1,      // (x - mean of the column)^2
  product = 2,     // x * (y - mean of the column)
  normalised = 3,  // x * (y - mean of the row) * scale of the row; the mean is 0 if not given
};

struct ColumnSums {
  int64_t rows = 0, columns = 0;
  Term term = Term::value;
  const float* x = nullptr;
  const float* y = nullptr;
  const float* mean = nullptr;
  const float* scale = nullptr;
};

class ColumnSummer {
 public:
  explicit ColumnSummer(OpenClDevice& device);
  static size_t workspace_bytes(int64_t rows, int64_t columns);
  // out[column] = factor * sum.
  void run(const ColumnSums& sums, float factor, float* out, void* workspace) const;

 private:
  OpenClDevice* device_;
  BuiltKernel partial_, total_;
};

}  // namespace artel::opencl
