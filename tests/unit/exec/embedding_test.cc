#include "artel/exec/cpu/sequence/embedding.h"

#include <cstring>

#include "artel/base/error.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

TEST(Embedding, ForwardAndBackward) {
  constexpr int64_t kRows = 11;
  for (const int64_t count : {0, 1, 500}) {
    for (const int64_t columns : {1, 17, 100}) {
      std::vector<int32_t> indices(count);
      Random random{3};
      for (int32_t& index : indices) index = static_cast<int32_t>(random.below(kRows));
      const std::vector<float> table = random_values(kRows * columns, 1),
                               dy = random_values(count * columns, 2);
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> y(count * columns), dtable(kRows * columns, 9.0f);
        embedding(pool, count, kRows, columns, indices.data(), table.data(), y.data());
        embedding_backward(pool, count, kRows, columns, indices.data(), dy.data(), dtable.data(),
                           5);
        y.insert(y.end(), dtable.begin(), dtable.end());
        // Onto the same again, in place and elsewhere.
        std::vector<float> twice(kRows * columns), in_place = dtable;
        embedding_backward(pool, count, kRows, columns, indices.data(), dy.data(), twice.data(), 5,
                           dtable.data());
        embedding_backward(pool, count, kRows, columns, indices.data(), dy.data(), in_place.data(),
                           5, in_place.data());
        EXPECT_EQ(twice, in_place);
        for (size_t i = 0; i < twice.size(); ++i) y.push_back(twice[i] / 2);
        return y;
      });
      std::vector<double> expected((count + kRows) * columns);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < columns; ++c) {
          expected[i * columns + c] = table[indices[i] * columns + c];
          if (indices[i] != 5) expected[(count + indices[i]) * columns + c] += dy[i * columns + c];
        }
      }
      expected.insert(expected.end(), expected.begin() + count * columns, expected.end());
      expect_close(got, expected, 1e-5);
    }
  }
}

// Lane by lane into tables of their own, which are then added in the order of the tree.
std::vector<float> summed_one_by_one(ThreadPool& pool, std::span<const LookedUpRows> lanes,
                                     std::span<const int> merges, const TableRows& rows,
                                     int64_t columns) {
  std::vector<std::vector<float>> stack;
  for (size_t i = 0; i < lanes.size(); ++i) {
    std::vector<float>& table = stack.emplace_back(rows.rows * columns);
    embedding_backward(pool, lanes[i].count, rows, columns, lanes[i].indices, lanes[i].dy,
                       table.data());
    for (int merge = 0; merge < merges[i]; ++merge) {
      const std::vector<float> right = std::move(stack.back());
      stack.pop_back();
      for (size_t k = 0; k < right.size(); ++k) stack.back()[k] += right[k];
    }
  }
  return stack.front();
}

TEST(Embedding, SumsOverLanesHaveTheBitsOfLanesOneByOne) {
  constexpr int64_t kColumns = 19;
  const std::vector<std::vector<int>> trees = {{0}, {0, 1}, {0, 1, 1}, {0, 1, 0, 2, 1}};
  for (const TableRows& rows : {TableRows(40), TableRows(10, 20, 40)})
    for (const std::vector<int>& merges : trees) {
      Random random{7};
      std::vector<std::vector<int32_t>> indices;
      std::vector<std::vector<float>> dy;
      std::vector<LookedUpRows> lanes;
      for (size_t lane = 0; lane < merges.size(); ++lane) {
        const int64_t count = lane == 1 ? 0 : 13 + static_cast<int64_t>(lane);
        indices.emplace_back(count);
        for (int32_t& index : indices.back()) index = static_cast<int32_t>(random.below(40));
        dy.push_back(random_values(count * kColumns, lane));
        if (count > 0) std::fill_n(dy.back().begin(), kColumns, -0.0f);
      }
      for (size_t lane = 0; lane < merges.size(); ++lane)
        lanes.push_back({std::ssize(indices[lane]), indices[lane].data(), dy[lane].data()});
      const std::vector<float> got = same_for_all_threads([&](ThreadPool& pool) {
        std::vector<float> sum(rows.rows * kColumns, 9.0f);
        embedding_backward_sums(pool, lanes, merges, rows, kColumns, sum.data());
        return sum;
      });
      ThreadPool pool(1);
      const std::vector<float> expected = summed_one_by_one(pool, lanes, merges, rows, kColumns);
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << merges.size();
    }
}

TEST(Embedding, RejectsWrongIndices) {
  ThreadPool pool(1);
  const std::vector<float> table(6);
  std::vector<float> y(2);
  for (const int32_t index : {-1, 3})
    EXPECT_THROW(embedding(pool, 1, 3, 2, &index, table.data(), y.data()), Error);
}

}  // namespace
}  // namespace artel::kernels
