#include "artel/exec/kernels/embedding.h"

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

TEST(Embedding, RejectsWrongIndices) {
  ThreadPool pool(1);
  const std::vector<float> table(6);
  std::vector<float> y(2);
  for (const int32_t index : {-1, 3})
    EXPECT_THROW(embedding(pool, 1, 3, 2, &index, table.data(), y.data()), Error);
}

}  // namespace
}  // namespace artel::kernels
