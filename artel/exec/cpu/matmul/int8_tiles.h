// The loops around tiles of int8 products. Internal to exec/cpu/matmul.
#pragma once

#include <algorithm>
#include <cstdint>

#include "artel/exec/cpu/matmul/int8_product.h"

namespace artel::kernels {

// Rows of x and rows of w in a tile. The last tiles may have a single row of x or w.
inline constexpr int64_t kInt8Tile = 4;

// Calls tile(row, rows, out, outs) for all tiles of the outputs [begin, end). A few rows of x stay
// in the first-level cache while all rows of w are read.
template <class Tile>
void for_each_int8_tile(const Int8Task& task, int64_t begin, int64_t end, const Tile& tile) {
  constexpr int64_t kCacheBytes = 24 << 10;
  const int64_t at_once = std::max(kInt8Tile, kCacheBytes / task.in / kInt8Tile * kInt8Tile);
  const auto next = [](int64_t at, int64_t last) { return at + kInt8Tile <= last ? kInt8Tile : 1; };
  for (int64_t first = 0; first < task.rows; first += at_once) {
    const int64_t last = std::min(task.rows, first + at_once);
    for (int64_t out = begin, outs = 0; out < end; out += outs) {
      outs = next(out, end);
      for (int64_t row = first, rows = 0; row < last; row += rows) {
        rows = next(row, last);
        tile(row, rows, out, outs);
      }
    }
  }
}

// Computes the outputs [begin, end) with the dot product instructions of AVX-512 VNNI.
void int8_outputs_with_vnni(const Int8Task& task, int64_t begin, int64_t end);
// True if this processor has them.
bool has_vnni();

}  // namespace artel::kernels
