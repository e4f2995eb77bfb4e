#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/nn/model.h"
#include "artel/nn/parse_layers.h"

namespace artel::nn {
namespace {

TEST(MaskPatches, HidesPartsInTrainingOnly) {
  const Model model = parse_layers({"mask_patches 4 0.5"});
  const auto nodes = [&](bool training) {
    Graph graph;
    Build build(graph, training);
    const Value x = graph.input("x", {DType::f32, {2, 3, 8, 12}});
    const Value y = model.network()(build, x);
    EXPECT_EQ(y.shape(), x.shape());
    return graph.nodes().size();
  };
  EXPECT_EQ(nodes(false), 0u);
  EXPECT_GT(nodes(true), 0u);
}

TEST(MaskPatches, RefusesImagesOfOtherSizes) {
  Graph graph;
  Build build(graph, true);
  const Value x = graph.input("x", {DType::f32, {2, 1, 10, 8}});
  EXPECT_THROW(parse_layers({"mask_patches 4"})(build, x), Error);
}

}  // namespace
}  // namespace artel::nn
