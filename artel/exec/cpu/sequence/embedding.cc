#include "artel/exec/cpu/sequence/embedding.h"

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

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

// A position of a lane that has looked up a row.
struct LookUp {
  int64_t row;
  int32_t lane;
  int64_t position;

  auto operator<=>(const LookUp&) const = default;
};

// Adds up one row over lanes. A lane that has not looked it up adds +0, which changes no bits: a
// sum that begins with +0 is never -0.
class RowSum {
 public:
  RowSum(std::span<const LookedUpRows> lanes, std::span<const int> merges, int64_t columns)
      : lanes_(lanes), merges_(merges), columns_(columns), stack_(lanes.size()) {
    sums_.resize(lanes.size() * static_cast<size_t>(columns));
  }

  // `found` are all positions that have looked up the row, lane by lane.
  void add(std::span<const LookUp> found, float* target) {
    size_t depth = 0;
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      stack_[depth] = 0;
      float* const sum = at(depth);
      for (; !found.empty() && found[0].lane == static_cast<int32_t>(lane);
           found = found.subspan(1)) {
        if (!std::exchange(stack_[depth], 1)) std::fill_n(sum, columns_, 0.0f);
        add_row(lanes_[lane].dy + found[0].position * columns_, sum);
      }
      for (int merge = 0; merge < merges_[lane]; ++merge, --depth) {
        if (!stack_[depth]) continue;
        if (stack_[depth - 1])
          add_row(at(depth), at(depth - 1));
        else
          std::copy_n(at(depth), columns_, at(depth - 1));
        stack_[depth - 1] = 1;
      }
      ++depth;
    }
    std::copy_n(at(0), columns_, target);
  }

 private:
  float* at(size_t depth) { return sums_.data() + depth * static_cast<size_t>(columns_); }
  void add_row(const float* __restrict from, float* __restrict to) const {
    for (int64_t c = 0; c < columns_; ++c) to[c] += from[c];
  }

  std::span<const LookedUpRows> lanes_;
  std::span<const int> merges_;
  int64_t columns_;
  std::vector<uint8_t> stack_;  // whether any lane of a sum has looked up the row
  std::vector<float> sums_;
};

std::vector<LookUp> look_ups(std::span<const LookedUpRows> lanes, const TableRows& rows) {
  std::vector<LookUp> all;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    check_indices(lanes[lane].count, rows.all, lanes[lane].indices);
    for (int64_t i = 0; i < lanes[lane].count; ++i) {
      const int64_t row = lanes[lane].indices[i] - rows.first;
      if (row >= 0 && row < rows.rows) all.push_back({row, static_cast<int32_t>(lane), i});
    }
  }
  std::ranges::sort(all);
  return all;
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

void embedding_backward_sums(ThreadPool& pool, std::span<const LookedUpRows> lanes,
                             std::span<const int> merges, const TableRows& rows, int64_t columns,
                             float* dtable) {
  constexpr int64_t kGrainFloats = 16384;
  const std::vector<LookUp> all = look_ups(lanes, rows);
  std::vector<size_t> begins;  // of the positions of each row that was looked up
  for (size_t i = 0; i < all.size(); ++i)
    if (i == 0 || all[i].row != all[i - 1].row) begins.push_back(i);
  begins.push_back(all.size());
  parallel_for(pool, rows.rows * columns, kGrainFloats,
               [=](int64_t begin, int64_t end) { std::fill(dtable + begin, dtable + end, 0.0f); });
  const int64_t grain = std::max<int64_t>(1, kGrainFloats / std::max<int64_t>(1, columns));
  parallel_for(pool, std::ssize(begins) - 1, grain, [&](int64_t begin, int64_t end) {
    RowSum sum(lanes, merges, columns);
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      sum.add(std::span(all).subspan(begins[i], begins[i + 1] - begins[i]),
              dtable + all[begins[i]].row * columns);
  });
}

}  // namespace artel::kernels
