#include "artel/train/step/touched_rows.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

namespace artel {
namespace {

// Rows that one thread looks at in one go.
constexpr int64_t kRowGrain = 4096;

bool is_touched(const float* row, size_t columns) {
  uint32_t bits = 0;  // branch-free, so compilers vectorise it
  for (size_t i = 0; i < columns; ++i) bits |= std::bit_cast<uint32_t>(row[i]);
  return bits != 0;
}

}  // namespace

TouchedRows touched_rows(std::span<const float> table, size_t columns, ThreadPool& pool) {
  const size_t rows = table.size() / columns;
  const size_t pieces = (rows + kRowGrain - 1) / kRowGrain;
  std::vector<TouchedRows> found(pieces);
  parallel_for(pool, static_cast<int64_t>(pieces), 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const auto first = static_cast<size_t>(piece * kRowGrain);
      for (size_t row = first; row < std::min<size_t>(rows, first + kRowGrain); ++row)
        if (is_touched(table.data() + row * columns, columns))
          found[static_cast<size_t>(piece)].push_back(static_cast<uint32_t>(row));
    }
  });
  TouchedRows all;
  for (const TouchedRows& each : found) all.insert(all.end(), each.begin(), each.end());
  return all;
}

void merge_rows(TouchedRows& rows, const TouchedRows& others) {
  TouchedRows both;
  both.reserve(rows.size() + others.size());
  std::ranges::set_union(rows, others, std::back_inserter(both));
  rows = std::move(both);
}

std::optional<TouchedRows> agree_on_rows(comm::Group& group, const TouchedRows& own, size_t most,
                                         std::string_view label) {
  const auto count = static_cast<uint32_t>(own.size());
  std::vector<uint32_t> counts(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&count, 1)), std::as_writable_bytes(std::span(counts)),
                   {}, {.label = label});
  const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
  if (all > most) return std::nullopt;
  if (all == 0) return TouchedRows();
  std::vector<size_t> sizes;
  for (const uint32_t each : counts) sizes.push_back(each * sizeof(uint32_t));
  TouchedRows lists(all);
  group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(lists)), sizes,
                   {.label = label});
  std::ranges::sort(lists);
  lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
  return lists;
}

void pack_rows(std::span<const float> table, const TouchedRows& rows, size_t columns,
               std::span<float> packed) {
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(table.data() + rows[i] * columns, columns, packed.data() + i * columns);
}

void unpack_rows(std::span<const float> packed, const TouchedRows& rows, size_t columns,
                 std::span<float> table) {
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(packed.data() + i * columns, columns, table.data() + rows[i] * columns);
}

std::vector<RowRun> runs_of(std::span<const uint32_t> rows) {
  std::vector<RowRun> runs;
  for (const uint32_t row : rows) {
    if (!runs.empty() && runs.back().first + runs.back().count == row)
      ++runs.back().count;
    else
      runs.push_back({row, 1});
  }
  return runs;
}

}  // namespace artel
