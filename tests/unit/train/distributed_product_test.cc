// A product of weights that lie on several workers has the bits of one worker with as many shards.
#include "artel/train/parts/distributed_product.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr int64_t kIn = 37, kOut = 29, kSamples = 5;

float weight(int64_t row, int64_t column) {
  return static_cast<float>(std::sin(static_cast<double>(row * 131 + column * 17)));
}

Tensor samples_of_product() {
  Tensor x({kSamples, kIn});
  Random random{3};
  for (float& v : x.values<float>()) v = random.normal();
  return x;
}

std::vector<float> multiply(Cluster& cluster, int rows, int columns) {
  DistributedProduct product(cluster, {kIn, kOut, rows, columns});
  Tensor part({product.rows().size(), product.columns().size()});
  size_t next = 0;
  for (int64_t r = product.rows().begin; r < product.rows().end; ++r)
    for (int64_t c = product.columns().begin; c < product.columns().end; ++c)
      part.values<float>()[next++] = weight(r, c);
  product.set_weights(part);
  const Tensor y = product(samples_of_product());
  return {y.values<float>().begin(), y.values<float>().end()};
}

TEST(DistributedProduct, HasTheBitsOfOneWorker) {
  const Tensor x = samples_of_product();
  for (const auto& grid : {std::pair{1, 4}, std::pair{4, 1}, std::pair{2, 2}, std::pair{6, 3}}) {
    const int rows = grid.first, columns = grid.second;
    Cluster one;
    const std::vector<float> expected = multiply(one, rows, columns);
    for (int64_t i = 0; i < kSamples; ++i)
      for (int64_t c = 0; c < kOut; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < kIn; ++r)
          sum += double{x.values<float>()[static_cast<size_t>(i * kIn + r)]} * weight(r, c);
        EXPECT_NEAR(expected[static_cast<size_t>(i * kOut + c)], sum, 1e-5);
      }
    for (const int workers : {2, rows * columns == 18 ? 9 : 4})
      on_workers(workers, [&](int rank, Cluster& cluster) {
        EXPECT_TRUE(same_bits(expected, multiply(cluster, rows, columns)))
            << "worker " << rank << " of " << workers << ", " << rows << " x " << columns;
      });
  }
}

TEST(DistributedProduct, SaysWhichNumberToChange) {
  try {
    on_workers(3, [&](int, Cluster& cluster) { multiply(cluster, 2, 2); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("2 x 2 shards (rows x columns) for 3 workers"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace artel
