// Pruning: which units can go, smaller networks that compute what remains, and runs.
#include "artel/shrink/prune_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/graph/ops.h"
#include "artel/nn/layers.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/nn/zoo/mobilenet.h"
#include "artel/nn/zoo/resnet.h"
#include "artel/predict/predictor.h"
#include "artel/run/run.h"
#include "artel/shrink/removable_units.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/weights.h"

namespace artel::shrink {
namespace {

const TensorType kPicture = {DType::f32, {3, 8, 8}};

std::map<std::string, UnitsOfLayer> by_name(const Model& model, const TensorType& sample) {
  std::map<std::string, UnitsOfLayer> all;
  for (const UnitsOfLayer& layer : units_of(model, sample)) all[layer.layer] = layer;
  return all;
}

Tensor random_rows(const Shape& shape, uint64_t seed) {
  Tensor rows(shape);
  Random random{seed};
  for (float& value : rows.values<float>()) value = random.normal();
  return rows;
}

// Initial weights with batch norms that do something.
NamedTensors lively_weights(const Model& model, const TensorType& sample) {
  NamedTensors weights = tests::initial_weights(model, sample, 3);
  Random random{7};
  for (NamedTensor& each : weights)
    if (each.tensor.shape().rank() == 1)
      for (float& value : each.tensor.values<float>()) value = 0.5F + random.uniform();
  return weights;
}

// Two hidden projections, whose product goes to the last layer.
Model gated_network() {
  return nn::Layer{"gated", [](nn::Build& build, Value x) {
                     const Value gate = nn::named("gate", nn::dense(10))(build, x);
                     const Value up = nn::named("up", nn::dense(10))(build, x);
                     return nn::named("down", nn::dense(4))(build, mul(unary("silu", gate), up));
                   }};
}

// The weights that read the units that are gone become zero.
NamedTensors without(const UnitsOfLayer& layer, const std::vector<int64_t>& kept,
                     NamedTensors weights) {
  for (const UnitSlice& slice : layer.read_by)
    for (NamedTensor& weight : weights) {
      if (weight.name != slice.tensor) continue;
      weight.tensor = weight.tensor.clone();
      const Shape& shape = weight.tensor.shape();
      int64_t inner = 1;
      for (int axis = slice.axis + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
      for (int64_t i = 0; i < weight.tensor.elements(); ++i) {
        const int64_t unit = i / inner % shape[slice.axis] / slice.block;
        if (!std::ranges::binary_search(kept, unit)) weight.tensor.values<float>()[i] = 0;
      }
    }
  return weights;
}

// Removing units gives what the network gives with those units at zero.
void expect_same_as_zeroed(const Model& model, const TensorType& sample) {
  NamedTensors zeroed = lively_weights(model, sample), pruned = zeroed;
  for (NamedTensor& weight : pruned) weight.tensor = weight.tensor.clone();
  nn::LayerUnits units;
  for (const UnitsOfLayer& layer : units_of(model, sample)) {
    if (!layer.kept_because.empty()) continue;
    const std::vector<int64_t> kept = most_important(layer, pruned, 0.5);
    EXPECT_EQ(std::ssize(kept), layer.units - layer.units / 2);
    zeroed = without(layer, kept, zeroed);
    keep_units(layer, kept, pruned);
    units[layer.layer] = std::ssize(kept);
    for (const std::string& partner : layer.partners) units[partner] = std::ssize(kept);
  }
  ASSERT_FALSE(units.empty());
  std::vector<int64_t> extents = sample.shape.extents();
  extents.insert(extents.begin(), 5);
  const Tensor x = random_rows(Shape(extents), 11);
  const Tensor expected = Predictor(model, sample, zeroed)(x);
  const Tensor got = Predictor(nn::with_units(units, model.network()), sample, pruned)(x);
  for (int64_t i = 0; i < expected.elements(); ++i)
    EXPECT_NEAR(got.values<float>()[i], expected.values<float>()[i],
                1e-4 * std::max(1.0F, std::fabs(expected.values<float>()[i])));
}

TEST(RemovableUnits, SmallerNetworksGiveWhatZeroedOnesGive) {
  expect_same_as_zeroed(
      nn::sequential({nn::conv(8, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                      nn::max_pool({2, 2}), nn::conv(6, {3, 3}, {.padding = {1, 1}}), nn::relu(),
                      nn::flatten(), nn::dense(10), nn::activation("sigmoid"), nn::dense(4)}),
      kPicture);
  expect_same_as_zeroed(nn::cifar_resnet(8, {.width = 8}), kPicture);
  expect_same_as_zeroed(nn::resnet(50, {.classes = 5, .small_images = true, .width = 8}), kPicture);
}

TEST(RemovableUnits, OnlyInnerChannelsOfBlocksGo) {
  const auto layers = by_name(nn::cifar_resnet(8, {.width = 8}), kPicture);
  EXPECT_EQ(layers.at("layer1.0.conv1").kept_because, "");
  EXPECT_EQ(layers.at("layer1.0.conv1").units, 8);
  EXPECT_EQ(layers.at("layer1.0.conv1").scale, "layer1.0.bn1.weight");
  EXPECT_NE(layers.at("layer1.0.conv2").kept_because.find("add"), std::string::npos);
  EXPECT_NE(layers.at("conv1").kept_because, "");
  EXPECT_EQ(layers.at("linear").kept_because, "it is the output");
}

TEST(RemovableUnits, HiddenUnitsOfTransformersGo) {
  const auto layers =
      by_name(nn::gpt2({.vocabulary = 11, .positions = 6, .width = 8, .depth = 1, .heads = 2}),
              {DType::i32, {6}});
  EXPECT_EQ(layers.at("h.0.mlp.c_fc").kept_because, "");
  EXPECT_EQ(layers.at("h.0.mlp.c_fc").read_by.front().axis, 0);  // stored [in, out]
  EXPECT_NE(layers.at("h.0.attn.c_attn").kept_because, "");
}

TEST(RemovableUnits, HiddenUnitsOfGatedNetworksGoTogether) {
  const Model model = nn::llama({.vocabulary = 11,
                                 .positions = 6,
                                 .width = 8,
                                 .depth = 1,
                                 .heads = 2,
                                 .key_heads = 1,
                                 .hidden = 12});
  const std::string prefix = "model.layers.0.mlp.";
  const auto layers = by_name(model, {DType::i32, {6}});
  const UnitsOfLayer& gate = layers.at(prefix + "gate_proj");
  EXPECT_EQ(gate.kept_because, "");
  EXPECT_EQ(gate.partners, std::vector<std::string>{prefix + "up_proj"});
  EXPECT_EQ(layers.at(prefix + "up_proj").kept_because,
            "its units must match those of '" + prefix + "gate_proj'");
  EXPECT_EQ(gate.read_by.front().tensor, prefix + "down_proj.weight");
  expect_same_as_zeroed(gated_network(), {DType::f32, {6}});
}

TEST(RemovableUnits, DepthwiseConvolutionsNarrowWithTheirInput) {
  expect_same_as_zeroed(
      nn::sequential({nn::conv(8, {1, 1}), nn::batch_norm(), nn::relu(),
                      nn::conv(8, {3, 3}, {.padding = {1, 1}, .groups = 8}), nn::batch_norm(),
                      nn::relu(), nn::conv(4, {1, 1}), nn::flatten(), nn::dense(2)}),
      kPicture);
  const auto layers =
      by_name(nn::mobilenet_v2({.classes = 5, .multiplier = 0.25}), {DType::f32, {3, 32, 32}});
  const UnitsOfLayer& wide = layers.at("features.2.conv.0.0");
  EXPECT_EQ(wide.kept_because, "");
  EXPECT_EQ(wide.partners, std::vector<std::string>{"features.2.conv.1.0"});
}

TEST(RemovableUnits, SharedWeightsAndGroupsStay) {
  const auto grouped =
      by_name(nn::sequential({nn::conv(6, {1, 1}), nn::conv(6, {3, 3}, {.groups = 2}),
                              nn::conv(4, {1, 1}), nn::flatten(), nn::dense(2)}),
              kPicture);
  EXPECT_EQ(grouped.at("1").kept_because, "it has groups");
  EXPECT_NE(grouped.at("0").kept_because, "");
  EXPECT_EQ(grouped.at("2").kept_because, "");
}

TEST(RemovableUnits, RemovingAllIsRefusedByName) {
  const Model model = nn::sequential({nn::flatten(), nn::dense(3), nn::dense(2)});
  const NamedTensors weights = tests::initial_weights(model, kPicture, 1);
  const UnitsOfLayer layer = units_of(model, kPicture).front();
  EXPECT_EQ(most_important(layer, weights, 0.99).size(), 1U);
  try {
    most_important(layer, weights, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[layer '1']"), std::string::npos) << error.what();
  }
}

TEST(Narrowing, NamesAndNumbersAreChecked) {
  const nn::Layer network = nn::sequential({nn::flatten(), nn::dense(4), nn::dense(2)});
  const auto build = [&](const nn::LayerUnits& units) {
    inference_graph(nn::with_units(units, network), {DType::f32, {2, 3}});
  };
  build({{"1", 3}});
  EXPECT_THROW(build({{"3", 3}}), Error);
  EXPECT_THROW(build({{"1", 5}}), Error);
  EXPECT_EQ(nn::parse_units({"a.b 8"}), (nn::LayerUnits{{"a.b", 8}}));
  for (const char* text : {"a", "a 0", "a -1", "a 8x", "a 8 9", ""})
    EXPECT_THROW(nn::parse_units({text}), Error) << text;
}

class PruneRunTest : public testing::Test {
 protected:
  PruneRunTest() {
    std::string rows = "a,b,c,label\n";
    Random random{3};
    for (int i = 0; i < 400; ++i) {
      const double a = random.normal(), b = random.normal(), c = random.normal();
      rows += fmt::format("{},{},{},{}\n", a, b, c, a * b + c > 0 ? "yes" : "no");
    }
    write_file_atomically(folder_ / "points.csv", rows);
    write_file_atomically(folder_ / "run.toml", R"([data]
set = "csv"
path = "points.csv"
[model]
layers = ["dense 32", "relu", "dense 16", "relu", "dense 2"]
[train]
batch_size = 32
epochs = 20
optimizer = { name = "adam", lr = 0.01 }
[cluster]
threads = 1
lanes = 2
)");
    artel::Run(folder_ / "run.toml", RunOptions{.out = run(), .quiet = true}).train();
  }

  std::string run() const { return (folder_ / "run").string(); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(PruneRunTest, UnitsGoAndTheRestIsTrained) {
  const PrunedRun pruned = prune_run({.source = {.path = run()}, .units = 0.5});
  EXPECT_LT(pruned.parameters_after, pruned.parameters_before / 2);
  EXPECT_LT(pruned.operations_after, pruned.operations_before / 2);
  EXPECT_EQ(pruned.config.model.units, (std::vector<std::string>{"0 16", "2 8"}));
  save_pruned(pruned, {.path = run()}, at("small"));
  EXPECT_NEAR(open_run({.path = at("small")}).evaluate(Part::test).loss, pruned.after.loss, 1e-6);
  EXPECT_THROW(save_pruned(pruned, {.path = run()}, at("small")), Error);
  const std::string config = prepare_finetuning(pruned, 3, at("tuned"), {});
  artel::Run(config, RunOptions{.out = at("tuned"), .quiet = true}).train();
  EXPECT_LT(open_run({.path = at("tuned")}).evaluate(Part::test).loss, pruned.after.loss);
  // A pruned run is pruned again.
  const PrunedRun again = prune_run({.source = {.path = at("tuned")}, .units = 0.5});
  EXPECT_EQ(again.config.model.units, (std::vector<std::string>{"0 8", "2 4"}));
}

int64_t zeros_in(const NamedTensors& weights) {
  int64_t zeros = 0;
  for (const NamedTensor& weight : weights)
    if (weight.tensor.shape().rank() == 2)
      zeros += std::ranges::count(weight.tensor.values<float>(), 0.0F);
  return zeros;
}

TEST_F(PruneRunTest, ZerosSurviveTraining) {
  for (const bool global : {true, false}) {
    const PrunedRun pruned =
        prune_run({.source = {.path = run()}, .weights = 0.8, .global = global});
    const int64_t zeros = zeros_in(pruned.weights);
    EXPECT_NEAR(static_cast<double>(zeros), 0.8 * (3 * 32 + 32 * 16 + 16 * 2), 3);
    const std::string out = at(global ? "global" : "local");
    artel::Run(prepare_finetuning(pruned, 2, out, {"train.optimizer.lr=0.02"}),
               RunOptions{.out = out, .quiet = true})
        .train();
    EXPECT_EQ(zeros_in(open_run({.path = out}).trainer->weights()), zeros);
  }
}

TEST_F(PruneRunTest, BadRequestsAreRefused) {
  EXPECT_THROW(prune_run({.source = {.path = run()}}), Error);
  EXPECT_THROW(prune_run({.source = {.path = run()}, .units = 1}), Error);
  EXPECT_THROW(prune_run({.source = {.path = run()}, .weights = 1}), Error);
  EXPECT_THROW(prune_run({.source = {.path = run()}, .units = 0.5, .keep = {"0", "2"}}), Error);
  EXPECT_THROW(prune_run({.source = {.path = at("nowhere")}, .units = 0.5}), Error);
}

}  // namespace
}  // namespace artel::shrink
