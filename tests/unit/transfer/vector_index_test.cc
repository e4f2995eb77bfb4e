#include "artel/transfer/vector_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "artel/base/random.h"
#include "artel/transfer/picture_search.h"

namespace artel::transfer {
namespace {

// Points around a few centres.
Tensor crowds(int64_t rows, int64_t width, int64_t centres, float spread, uint64_t seed) {
  Tensor vectors({rows, width});
  Random random(seed);
  std::vector<float> middle(centres * width);
  for (float& value : middle) value = random.normal();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < width; ++i)
      vectors.values<float>()[row * width + i] =
          middle[row % centres * width + i] + spread * random.normal();
  return vectors;
}

TEST(VectorIndex, TheExactOneSortsByDistance) {
  const Tensor vectors = Tensor::from<float>({4, 2}, {0, 0, 3, 4, 1, 0, 0, 1});
  ThreadPool pool(2);
  const auto found = exact_index(vectors)->nearest(pool, Tensor::from<float>({1, 2}, {0, 0}), 3);
  EXPECT_EQ(found[0], (Neighbours{{0, 0}, {2, 1}, {3, 1}}));
  EXPECT_EQ(exact_index(vectors)->nearest(pool, vectors, 9)[1].back(), (Neighbour{0, 5}));
}

TEST(VectorIndex, TheExactOneIsThatOfAPlainComparison) {
  ThreadPool pool(2);
  Random random(7);
  for (const int64_t width : {1, 3, 8, 17, 40, 300})
    for (const int64_t rows : {1, 5, 130}) {
      const Tensor vectors = crowds(rows, width, 3, 0.5f, random.below(1000));
      const Tensor queries = crowds(70, width, 3, 0.5f, random.below(1000));
      const auto found = exact_index(vectors)->nearest(pool, queries, 4);
      for (int64_t query = 0; query < 70; ++query) {
        std::vector<double> distances(rows);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t i = 0; i < width; ++i) {
            const double difference = double{queries.values<float>()[query * width + i]} -
                                      vectors.values<float>()[row * width + i];
            distances[row] += difference * difference;
          }
        ASSERT_EQ(std::ssize(found[query]), std::min<int64_t>(4, rows));
        for (const Neighbour& each : found[query])
          EXPECT_NEAR(each.distance, std::sqrt(distances[each.row]), 1e-5 * each.distance + 1e-6);
        std::ranges::sort(distances);
        EXPECT_NEAR(found[query].back().distance, std::sqrt(distances[found[query].size() - 1]),
                    1e-5 * found[query].back().distance + 1e-6);
      }
    }
}

TEST(VectorIndex, ResultsDoNotDependOnThreads) {
  const Tensor vectors = crowds(300, 37, 5, 0.5f, 1);
  ThreadPool one(1), four(4);
  EXPECT_EQ(exact_index(vectors)->nearest(one, vectors, 10),
            exact_index(vectors)->nearest(four, vectors, 10));
}

TEST(VectorIndex, TheApproximateOneMissesFew) {
  const Tensor vectors = crowds(4000, 32, 40, 0.5f, 2), queries = crowds(100, 32, 40, 0.5f, 3);
  ThreadPool pool(2);
  const double share =
      recall(pool, *approximate_index(vectors), *exact_index(vectors), queries, 10);
  EXPECT_GE(share, 0.98);
}

TEST(GroupAlike, CrowdsAreFoundAndLonersStayAlone) {
  Tensor vectors = crowds(60, 16, 3, 0.02f, 4);
  for (int64_t i = 0; i < 16; ++i) vectors.values<float>()[59 * 16 + i] += 10;
  ThreadPool pool(2);
  const auto groups = group_alike(pool, *exact_index(vectors), vectors, 0.5f);
  ASSERT_EQ(groups.size(), 4);
  EXPECT_EQ(groups[0].size(), 20);
  EXPECT_EQ(groups[2].size(), 19);
  EXPECT_EQ(groups[3], (std::vector<int64_t>{59}));
  for (const auto& group : groups)
    for (const int64_t row : group) EXPECT_EQ(row % 3, group[0] % 3);
}

}  // namespace
}  // namespace artel::transfer
