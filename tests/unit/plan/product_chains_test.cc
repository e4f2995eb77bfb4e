#include "artel/plan/product_chains.h"

#include <gtest/gtest.h>

#include "artel/base/random.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"

namespace artel::plan {
namespace {

// The cheapest of all orders, by trying each.
double cheapest_of_all(std::span<const int64_t> extents) {
  if (extents.size() == 2) return 0;
  double best = -1;
  for (size_t split = 1; split + 1 < extents.size(); ++split) {
    const double product =
        2.0 * static_cast<double>(extents.front() * extents[split] * extents.back());
    const double flops = cheapest_of_all(extents.first(split + 1)) +
                         cheapest_of_all(extents.subspan(split)) + product;
    if (best < 0 || flops < best) best = flops;
  }
  return best;
}

TEST(ProductChains, TheOrderIsTheBestOfAll) {
  Random random({7});
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<int64_t> extents(2 + random.below(7));
    for (int64_t& extent : extents) extent = 1 + static_cast<int64_t>(random.below(50));
    EXPECT_DOUBLE_EQ(best_product_order(extents).flops, cheapest_of_all(extents));
  }
}

TEST(ProductChains, KnownOrders) {
  // Cormen et al., chapter 15: 15,125 multiplications.
  const std::vector<int64_t> extents = {30, 35, 15, 5, 10, 20, 25};
  const ProductOrder order = best_product_order(extents);
  EXPECT_DOUBLE_EQ(order.flops, 2 * 15125);
  EXPECT_EQ(order.text, "((A (B C)) ((D E) F))");
  EXPECT_EQ(best_product_order(std::vector<int64_t>{3, 4}).flops, 0);
}

TEST(ProductChains, AreFoundInGraphs) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {64, 32}});
  const Value up = graph.parameter("up", {32, 512});
  const Value down = graph.parameter("down", {512, 4});
  const Value shared = matmul(x, graph.parameter("w", {32, 32}));
  Value sum = mean(matmul(matmul(shared, up), down));
  sum = add(sum, mean(shared));  // the first product is used twice, so it is a factor
  graph.set_output("loss", sum);
  const Graph trained = lower(graph, Differentiation{});
  const std::vector<ProductChain> chains = product_chains(trained);
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_EQ(chains[0].extents, (std::vector<int64_t>{64, 32, 512, 4}));
  EXPECT_DOUBLE_EQ(chains[0].flops, 2.0 * 64 * 32 * 512 + 2.0 * 64 * 512 * 4);
  EXPECT_EQ(chains[0].best.text, "(A (B C))");
  EXPECT_DOUBLE_EQ(chains[0].best.flops, 2.0 * 32 * 512 * 4 + 2.0 * 64 * 32 * 4);
}

}  // namespace
}  // namespace artel::plan
