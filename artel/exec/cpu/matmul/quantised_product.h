// Products with quantised matrices (tensor/quantised.h). With one row of x, the time is limited by
// reading the codes.
//
// x is rounded to integers from -127 to 127, so that sums of products of codes are exact. If each
// row of the matrix has a single scale of 8 bits, each row of x has one scale, too, and the sum
// over the whole row is exact (int8_product.h). Otherwise each block of 32 elements of x has its
// own scale. One thread computes each output from one row, so neither the number of threads nor
// other rows change its bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"
#include "artel/exec/cpu/matmul/int8_product.h"

namespace artel::kernels {

struct QuantisedShape {
  int64_t rows;     // of x
  int64_t out, in;  // of the matrix
  int bits;         // 8 or 4
  int64_t group;    // columns that share a scale
  bool offsets;     // with 4 bits: elements are scale * code + offset, not scale * (code - 8)

  int64_t groups() const { return in / group; }
  // True if whole rows of x are rounded with one scale.
  bool rounds_rows() const { return bits == 8 && group == in && in <= kLongestInt8Row; }
};

// Scales and offsets as the bits of f16, [out, groups].
struct QuantisedMemory {
  const std::byte* codes;
  const uint16_t* scales;
  const uint16_t* offsets;  // null without offsets
};

class QuantisedProduct {
 public:
  explicit QuantisedProduct(const QuantisedShape& shape) : shape_(shape) {}

  size_t workspace_bytes() const;
  // y [rows, out] = x [rows, in] times the transposed matrix, plus `bias` [out] unless it is null.
  void run(ThreadPool& pool, const float* x, const QuantisedMemory& matrix, const float* bias,
           float* y, std::byte* workspace) const;

 private:
  QuantisedShape shape_;
};

// Row indices[i] of the matrix as numbers: y [count, in]. Throws for an index outside of its rows.
void quantised_rows(ThreadPool& pool, const QuantisedShape& shape, int64_t count,
                    const int32_t* indices, const QuantisedMemory& matrix, float* y);

}  // namespace artel::kernels
