// Rows of a table by index, and their gradient.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// y[i] = table[indices[i]] for i in [0, count). Throws for an index outside of [0, table_rows).
void embedding(ThreadPool& pool, int64_t count, int64_t table_rows, int64_t columns,
               const int32_t* indices, const float* table, float* y);

// dtable = 0, then dtable[indices[i]] += dy[i] in the order of i. Rows of `padding_index` stay 0.
void embedding_backward(ThreadPool& pool, int64_t count, int64_t table_rows, int64_t columns,
                        const int32_t* indices, const float* dy, float* dtable,
                        int32_t padding_index = -1);

}  // namespace artel::kernels
