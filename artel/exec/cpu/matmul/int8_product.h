// Products of int8 matrices with one scale per row. The sum over a row is an exact integer, so the
// bits do not depend on tiles, threads, the number of rows, or the processor's instructions.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// Longest row whose sums of products of codes from -127 to 127 fit into 32 bits.
inline constexpr int64_t kLongestInt8Row = int64_t{1} << 17;

// The rows of x as codes from -127 to 127: x is approximately scale * code.
struct Int8Rows {
  int8_t* codes;  // [rows, in]
  float* scales;  // [rows]
  int32_t* sums;  // [rows]: the sum of the codes
};

// y [rows, out] = x [rows, in] times the transposed w [out, in], plus `bias` unless it is null. The
// number of elements per row is a multiple of 32.
struct Int8Task {
  int64_t rows, out, in;
  Int8Rows x;
  const int8_t* codes;  // of w, from -127 to 127
  const float* scales;  // of the rows of w
  const float* bias;
  float* y;
};

// Chooses each row's scale from its largest element. A row with NaN or infinity gets the scale NaN.
void round_int8_rows(ThreadPool& pool, const float* x, int64_t rows, int64_t in,
                     const Int8Rows& rounded);

// `any` exists on all processors, `vnni` on those with AVX-512 VNNI.
enum class Int8Instructions { any, vnni };
// The fastest instructions that this process may use.
Int8Instructions best_int8_instructions();

void int8_product(ThreadPool& pool, const Int8Task& task,
                  Int8Instructions instructions = best_int8_instructions());

}  // namespace artel::kernels
