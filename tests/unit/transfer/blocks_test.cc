#include "artel/transfer/blocks.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/nn/layers.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "tests/support/error_of.h"

namespace artel::transfer {
namespace {

std::vector<std::string> block_names(const Model& model, const TensorType& sample) {
  std::vector<std::string> names;
  for (const Block& block : blocks_of(model, sample)) names.push_back(block.name);
  return names;
}

TEST(Blocks, OfAResNetAreItsResidualBlocks) {
  const Model model = nn::model_by_name("resnet18", {.classes = 10, .width = 8});
  const TensorType sample = {DType::f32, {3, 64, 64}};
  EXPECT_EQ(block_names(model, sample),
            (std::vector<std::string>{"conv1", "layer1.0", "layer1.1", "layer2.0", "layer2.1",
                                      "layer3.0", "layer3.1", "layer4.0", "layer4.1", "fc"}));
  const std::vector<Block> blocks = blocks_of(model, sample);
  EXPECT_EQ(blocks[0].prefixes, (std::vector<std::string>{"conv1.", "bn1."}));
  EXPECT_EQ(blocks[0].output, "before layer1.0");
  EXPECT_EQ(blocks.back().parameters, 8 * 8 * 10 + 10);
}

TEST(Blocks, OfTransformersAndOfLayersAsText) {
  EXPECT_EQ(block_names(nn::model_by_name("vit_tiny", {.classes = 5, .width = 12, .depth = 2}),
                        {DType::f32, {3, 32, 32}}),
            (std::vector<std::string>{"patch_embed", "blocks.0", "blocks.1", "head"}));
  EXPECT_EQ(block_names(nn::model_by_name("bert_classifier", {.classes = 2,
                                                              .width = 8,
                                                              .depth = 2,
                                                              .heads = 2,
                                                              .positions = 16,
                                                              .vocabulary = 50}),
                        {DType::i32, {16}}),
            (std::vector<std::string>{"bert.embeddings", "bert.encoder.layer.0",
                                      "bert.encoder.layer.1", "bert.pooler", "classifier"}));
  const Model text = nn::parse_layers(
      {"conv 4 3x3", "batch_norm", "relu", "flatten", "dense 8", "relu", "dense 3"});
  EXPECT_EQ(block_names(text, {DType::f32, {1, 8, 8}}), (std::vector<std::string>{"0", "4", "6"}));
}

TEST(Blocks, AreChosenAsPeopleSayIt) {
  const std::vector<Block> blocks = blocks_of(
      nn::model_by_name("resnet18", {.classes = 10, .width = 8}), {DType::f32, {3, 64, 64}});
  const auto count = [&](const std::string& train) {
    return std::ranges::count(trained_blocks(blocks, train), true);
  };
  EXPECT_EQ(count("head"), 1);
  EXPECT_EQ(count("last 2"), 3);
  EXPECT_EQ(count("all"), 10);
  EXPECT_EQ(count("layer4"), 3);
  EXPECT_EQ(count("layer3, layer4.1"), 4);
  EXPECT_FALSE(trained_blocks(blocks, "last 2")[6]);
  EXPECT_TRUE(trained_blocks(blocks, "last 2")[7]);
}

TEST(Blocks, ThatDoNotExistAreRefusedWithTheNearest) {
  const std::vector<Block> blocks = blocks_of(
      nn::model_by_name("resnet18", {.classes = 10, .width = 8}), {DType::f32, {3, 64, 64}});
  EXPECT_NE(
      artel::error_of([&] { trained_blocks(blocks, "layer4.2"); }).find("did you mean 'layer"),
      std::string::npos);
  EXPECT_NE(artel::error_of([&] { trained_blocks(blocks, "last 12"); }).find("from 0 to 9"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { trained_blocks(blocks, ""); }).find("expected \"head\""),
            std::string::npos);
}

}  // namespace
}  // namespace artel::transfer
