// The rows of an embedding table that a step has touched: those whose gradient is not all zero.
//
// Workers exchange and update only these rows (docs/decisions/0360-tables-travel-by-rows.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/comm/group.h"

namespace artel {

// Ascending row numbers.
using TouchedRows = std::vector<uint32_t>;

// The rows of `table`, `columns` wide, with an element that is not +0. A row of -0 counts, so that
// leaving out all others changes no bit of a sum.
TouchedRows touched_rows(std::span<const float> table, size_t columns, ThreadPool& pool);
// Adds the rows of another table to `rows`.
void merge_rows(TouchedRows& rows, const TouchedRows& others);

// The rows that any rank has touched, or nothing if the ranks together list more than `most`. A
// collective call, with the same result on all ranks: 4 bytes for each rank, then 4 for each row.
std::optional<TouchedRows> agree_on_rows(comm::Group& group, const TouchedRows& own, size_t most,
                                         std::string_view label);

// Copies rows of a table side by side, or back.
void pack_rows(std::span<const float> table, const TouchedRows& rows, size_t columns,
               std::span<float> packed);
void unpack_rows(std::span<const float> packed, const TouchedRows& rows, size_t columns,
                 std::span<float> table);

// A run of neighbouring rows.
struct RowRun {
  size_t first = 0, count = 0;
};
std::vector<RowRun> runs_of(std::span<const uint32_t> rows);

}  // namespace artel
