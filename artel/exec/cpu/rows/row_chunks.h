// Sums over the rows of a matrix in an order that depends on its shape only: rows are cut into a
// fixed number of chunks, each chunk is summed by one thread, and the sums of the chunks are added
// in order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct RowChunks {
  int64_t rows;
  int64_t size;   // rows in a chunk, but for the last
  int64_t count;  // at most kMaxChunks

  static constexpr int64_t kBlock = 64;  // rows that are summed in single precision
  static constexpr int64_t kMaxChunks = 32;

  explicit RowChunks(int64_t rows_in) : rows(rows_in) {
    const int64_t blocks = (rows + kBlock - 1) / kBlock;
    size = std::max<int64_t>(1, (blocks + kMaxChunks - 1) / kMaxChunks) * kBlock;
    count = (rows + size - 1) / size;
  }

  // `sums` values for each column and chunk.
  int64_t workspace_bytes(int64_t columns, int64_t sums) const {
    return count * columns * sums * static_cast<int64_t>(sizeof(double));
  }

  // body(begin, end, partial) fills the `width` partial sums of each chunk of rows; then
  // finish(i, total) gets each of them.
  template <typename Body, typename Finish>
  void sum(ThreadPool& pool, int64_t width, void* workspace, const Body& body,
           const Finish& finish) const {
    auto* partial = static_cast<double*>(workspace);
    pool.run(count, [&](int64_t chunk) {
      double* own = partial + chunk * width;
      std::fill(own, own + width, 0.0);
      body(chunk * size, std::min(rows, (chunk + 1) * size), own);
    });
    for (int64_t i = 0; i < width; ++i) {
      double total = 0;
      for (int64_t chunk = 0; chunk < count; ++chunk) total += partial[chunk * width + i];
      finish(i, total);
    }
  }
};

}  // namespace artel::kernels
