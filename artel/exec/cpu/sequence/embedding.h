// Rows of a table by index, and their gradient.
#pragma once

#include <cstdint>
#include <span>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// The rows of a table, or those from `first` on of a table with more.
struct TableRows {
  int64_t rows;
  int64_t first = 0;
  int64_t all = rows;

  TableRows(int64_t rows) : rows(rows) {}  // NOLINT: a whole table
  TableRows(int64_t rows, int64_t first, int64_t all) : rows(rows), first(first), all(all) {}
};

// y[i] = table[indices[i]] for i in [0, count), zeros for rows that are not here. Throws for an
// index outside of the whole table.
void embedding(ThreadPool& pool, int64_t count, const TableRows& rows, int64_t columns,
               const int32_t* indices, const float* table, float* y);

// dtable = onto, or 0 without it; then dtable[indices[i]] += dy[i] in the order of i. `onto` may be
// dtable. Nothing is added to rows of `padding_index`.
void embedding_backward(ThreadPool& pool, int64_t count, const TableRows& rows, int64_t columns,
                        const int32_t* indices, const float* dy, float* dtable,
                        int32_t padding_index = -1, const float* onto = nullptr);

// Contribution of a lane to the gradient of a table.
struct LookedUpRows {
  int64_t count;
  const int32_t* indices;
  const float* dy;
};

// The sum over lanes of embedding_backward's tables, in the order of `merges` (LaneSubtree), with
// the same bits. Costs one pass over the table and, for each lane, only the rows it has looked up.
void embedding_backward_sums(ThreadPool& pool, std::span<const LookedUpRows> lanes,
                             std::span<const int> merges, const TableRows& rows, int64_t columns,
                             float* dtable);

}  // namespace artel::kernels
