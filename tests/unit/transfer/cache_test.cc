#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "artel/base/error.h"
#include "artel/nn/frozen_part.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/transfer/finetune.h"
#include "tests/unit/transfer/trained_base.h"

namespace artel::transfer {
namespace {

void expect_same_weights(const std::string& one, const std::string& other) {
  const NamedTensors a = weights_at(one), b = weights_at(other);
  ASSERT_EQ(a.size(), b.size());
  for (const NamedTensor& tensor : a) {
    const Tensor* const same = find_tensor(b, tensor.name);
    ASSERT_TRUE(same != nullptr) << tensor.name;
    EXPECT_EQ(std::memcmp(same->raw(), tensor.tensor.raw(), tensor.tensor.bytes()), 0)
        << tensor.name;
  }
}

// Trains a plan with and without kept features.
void expect_same_with_cache(const TrainedBase& trained, const std::string& train,
                            const std::vector<std::string>& settings) {
  const BaseNetwork base = open_base({.name = trained.base()});
  for (const char* cache : {"true", "false"}) {
    std::vector<std::string> overrides = settings;
    overrides.push_back(std::string("train.cache=") + cache);
    const Finetuning plan =
        plan_finetuning(base, "dark_spots", {.train = train, .overrides = overrides});
    const std::string out = trained.at(train + cache);
    artel::Run(plan.config, {.out = out, .quiet = true}).train();
  }
  expect_same_weights(trained.at(train + "true"), trained.at(train + "false"));
}

TEST(Cache, GivesTheSameWeightsAsComputingEachTime) {
  setenv("ARTEL_DATA", (std::filesystem::temp_directory_path() / "artel_cache_test").c_str(), 1);
  const TrainedBase trained("cache");
  expect_same_with_cache(trained, "head", {"cluster.lanes=2", "train.epochs=3"});
  expect_same_with_cache(trained, "last 1",
                         {"cluster.lanes=4", "train.epochs=2", "cluster.threads=2"});
  // The trained network can be used like any other run.
  artel::Run run = artel::Run::open(trained.at("headtrue"));
  EXPECT_GT(run.evaluate(Part::test).accuracy, 0.5);
  EXPECT_EQ(run.predict(Tensor({2, 1, 12, 12})).shape(), (Shape{2, 3}));
  std::filesystem::remove_all(std::filesystem::temp_directory_path() / "artel_cache_test");
}

TEST(Cache, RefusesWhatContradictsIt) {
  const TrainedBase trained("refused_cache");
  const BaseNetwork base = open_base({.name = trained.base()});
  const auto run = [&](const std::string& train, const std::string& setting) {
    const Finetuning plan = plan_finetuning(
        base, "dark_spots",
        {.train = train, .overrides = {"train.cache=true", "train.epochs=1", setting}});
    artel::Run(plan.config, {.out = trained.at("refused"), .quiet = true}).train();
  };
  EXPECT_THROW(run("head", "train.keep_last_batch=true"), Error);
  EXPECT_THROW(run("head", "train.tune=true"), Error);
  EXPECT_THROW(run("all", "train.seed=1"), Error);
}

// The parts of a network, one after the other, are the network.
void expect_same_in_parts(const Model& model, const TensorType& sample,
                          const std::vector<std::string>& trained, const std::string& layer) {
  const auto cut = nn::cut_frozen(model, sample, [&](const std::string& name) {
    return std::ranges::any_of(trained,
                               [&](const std::string& prefix) { return name.starts_with(prefix); });
  });
  const auto* const part = std::get_if<nn::FrozenPart>(&cut);
  ASSERT_TRUE(part != nullptr) << std::get<nn::NoFrozenPart>(cut).reason;
  EXPECT_EQ(part->layer, layer);
  const ModelGraph whole = inference_graph(model, batch_of(sample, 4));
  NamedTensors weights;
  for (const auto& [name, initialiser] : whole.initialisers)
    weights.push_back(
        {name, nn::initial_value(3, name, whole.graph.type(whole.graph.find(name).value()).shape,
                                 initialiser)});
  Tensor x(batch_of(sample, 4).shape);
  Random random{9};
  for (float& value : x.values<float>()) value = random.normal();
  const Tensor expected = Predictor(model, sample, weights)(x);
  const Tensor features = Predictor(part->below, sample, weights)(x);
  EXPECT_EQ(features.shape(), batch_of(part->value, 4).shape);
  const Tensor got = Predictor(part->above, part->value, weights)(features);
  EXPECT_EQ(std::memcmp(got.raw(), expected.raw(), expected.bytes()), 0);
}

TEST(FrozenPart, WithTheRestIsTheNetwork) {
  const TensorType sample = {DType::f32, {3, 32, 32}};
  const Model resnet =
      nn::model_by_name("resnet18", {.classes = 5, .small_images = true, .width = 16});
  expect_same_in_parts(resnet, sample, {"fc"}, "flatten");
  expect_same_in_parts(resnet, sample, {"fc", "layer4"}, "layer3.1");
  const Model vit =
      nn::model_by_name("vit_tiny", {.classes = 5, .width = 24, .depth = 3, .heads = 3});
  expect_same_in_parts(vit, sample, {"head"}, "norm");
  expect_same_in_parts(vit, sample, {"head", "norm", "blocks.2"}, "blocks.1");
  // Below a dropout, which is different in each step.
  const Model vgg = nn::model_by_name("vgg11", {.classes = 5, .width = 8});
  const auto cut = nn::cut_frozen(vgg, {DType::f32, {3, 224, 224}}, [](const std::string& name) {
    return name.starts_with("classifier.6");
  });
  EXPECT_EQ(std::get<nn::FrozenPart>(cut).layer, "classifier.1");
}

}  // namespace
}  // namespace artel::transfer
