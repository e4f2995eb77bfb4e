// Products with quantised matrices (tensor/quantised.h), for text generation. With one row of x,
// the time is limited by reading the codes.
//
// Each block of 32 elements of x is rounded to integers from -127 to 127 with its own scale. The
// sum of products over a block is then an exact integer. One thread computes each output, so the
// bits do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct QuantisedShape {
  int64_t rows;     // of x
  int64_t out, in;  // of the matrix
  int bits;         // 8 or 4
  int64_t group;    // columns that share a scale
  bool offsets;     // with 4 bits: elements are scale * code + offset, not scale * (code - 8)

  int64_t groups() const { return in / group; }
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
