#include "artel/exec/kernels/embedding.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel::kernels {
namespace {

// Columns of one cache line, so that no two threads write to the same one.
constexpr int64_t kColumnGrain = 16;

void check_indices(int64_t count, int64_t table_rows, const int32_t* indices) {
  for (int64_t i = 0; i < count; ++i) {
    require(indices[i] >= 0 && indices[i] < table_rows, ErrorKind::invalid_argument,
            "[embedding] index {} of {}: got {}, expected 0 to {}", i, count, indices[i],
            table_rows - 1);
  }
}

}  // namespace

void embedding(ThreadPool& pool, int64_t count, const TableRows& rows, int64_t columns,
               const int32_t* indices, const float* table, float* y) {
  check_indices(count, rows.all, indices);
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, columns));
  parallel_for(pool, count, grain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = indices[i] - rows.first;
      if (row >= 0 && row < rows.rows)
        std::copy_n(table + row * columns, columns, y + i * columns);
      else
        std::fill_n(y + i * columns, columns, 0.0f);
    }
  });
}

void embedding_backward(ThreadPool& pool, int64_t count, const TableRows& rows, int64_t columns,
                        const int32_t* indices, const float* dy, float* dtable,
                        int32_t padding_index, const float* onto) {
  check_indices(count, rows.all, indices);
  parallel_for(pool, columns, kColumnGrain, [=](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows.rows && onto != dtable; ++row) {
      float* const to = dtable + row * columns;
      if (onto)
        std::copy(onto + row * columns + begin, onto + row * columns + end, to + begin);
      else
        std::fill(to + begin, to + end, 0.0f);
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = indices[i] - rows.first;
      if (indices[i] == padding_index || row < 0 || row >= rows.rows) continue;
      const float* __restrict from = dy + i * columns;
      float* __restrict to = dtable + row * columns;
      for (int64_t c = begin; c < end; ++c) to[c] += from[c];
    }
  });
}

}  // namespace artel::kernels
