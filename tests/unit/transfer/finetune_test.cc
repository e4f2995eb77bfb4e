#include "artel/transfer/finetune.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "tests/unit/transfer/trained_base.h"

namespace artel::transfer {
namespace {

std::vector<std::string> settings(int64_t epochs) {
  return {"cluster.lanes=2", "cluster.threads=1", fmt::format("train.epochs={}", epochs)};
}

TEST(Finetune, ReplacesTheHeadFreezesTheRestAndLearns) {
  const TrainedBase trained("finetune");
  const BaseNetwork base = open_base({.name = trained.base()});
  const Finetuning plan = plan_finetuning(
      base, "dark_spots", {.train = "head", .rate = 0.02, .overrides = settings(20)});
  EXPECT_FALSE(plan.keeps_head);
  EXPECT_EQ(plan.config.model.layers.back(), "dense 3");
  EXPECT_EQ(plan.config.model.new_layers, std::vector<std::string>{"7."});
  EXPECT_EQ(plan.config.train.freeze, (std::vector<std::string>{"0.", "1.", "4."}));
  const FinetuneScore before = score_before(plan);
  artel::Run run(plan.config, {.out = trained.at("tuned"), .quiet = true});
  run.train();
  const FinetuneScore after = score_after(plan, trained.at("tuned"));
  EXPECT_EQ(after.test.samples, 90);
  EXPECT_EQ(before.validation.samples, 30);
  EXPECT_GT(after.test.accuracy, 0.8);
  EXPECT_GT(after.test.accuracy, before.test.accuracy);
  // Frozen layers are those of the base.
  const NamedTensors first = base.weights, last = weights_at(trained.at("tuned"));
  for (const char* name : {"0.weight", "1.running_mean", "4.bias"}) {
    const Tensor *a = find_tensor(first, name), *b = find_tensor(last, name);
    ASSERT_TRUE(a && b) << name;
    EXPECT_EQ(std::memcmp(a->raw(), b->raw(), a->bytes()), 0) << name;
  }
  // A finished run is a base again, and its head fits the same classes.
  const Finetuning again = plan_finetuning(open_base({.name = trained.at("tuned")}), "dark_spots",
                                           {.train = "all", .overrides = settings(1)});
  EXPECT_TRUE(again.keeps_head);
  EXPECT_TRUE(again.config.model.new_layers.empty());
}

// Images with a spot, with the number of its place as their value.
data::DatasetPtr placed_spots(int64_t samples, uint64_t seed) {
  const data::DatasetPtr set = spots(samples, 3, true, seed);
  Tensor images({samples, 1, 12, 12}), places({samples});
  const size_t bytes = images.bytes() / static_cast<size_t>(samples);
  for (int64_t i = 0; i < samples; ++i) {
    int32_t label = 0;
    set->read(i, {images.raw() + static_cast<size_t>(i) * bytes, bytes},
              std::as_writable_bytes(std::span(&label, 1)));
    places.values<float>()[i] = static_cast<float>(label);
  }
  return data::tensor_dataset(images, places);
}

TEST(Finetune, LearnsValues) {
  const TrainedBase trained("values");
  data::register_dataset("placed_spots", [](const data::OpenOptions&) {
    return data::Split{placed_spots(200, 5), placed_spots(90, 6)};
  });
  const BaseNetwork base = open_base({.name = trained.base()});
  const Finetuning plan = plan_finetuning(
      base, "placed_spots", {.train = "all", .rate = 0.01, .overrides = settings(10)});
  EXPECT_EQ(plan.config.model.layers.back(), "dense 1");
  EXPECT_EQ(plan.config.train.loss, "mse");
  EXPECT_EQ(plan.config.train.metrics, std::vector<std::string>{"mean absolute error"});
  const FinetuneScore before = score_before(plan);
  artel::Run(plan.config, {.out = trained.at("tuned"), .quiet = true}).train();
  EXPECT_LT(score_after(plan, trained.at("tuned")).test.loss, before.test.loss / 4);
  // Targets may have more numbers than the network has outputs.
  const Finetuning wide = plan_finetuning(base, "placed_spots", {.outputs = 4});
  EXPECT_EQ(wide.config.model.layers.back(), "dense 4");
  EXPECT_TRUE(wide.config.train.metrics.empty());
}

TEST(Finetune, RatesAreSmallerBelow) {
  const TrainedBase trained("rates");
  const Finetuning plan = plan_finetuning(open_base({.name = trained.base()}), "dark_spots",
                                          {.train = "all", .below = 0.5, .decay = 0.1});
  EXPECT_EQ(plan.config.train.optimizer.at("rates"), "4.: 0.5, 0.: 0.05, 1.: 0.05");
  EXPECT_TRUE(plan.config.train.freeze.empty());
  // As TOML it is the same.
  const RunConfig again = parse_config(to_toml(plan.config), "plan");
  EXPECT_EQ(to_toml(again), to_toml(plan.config));
}

TEST(Finetune, FewSamplesGetMoreEpochsAndAreJudgedByLoss) {
  EXPECT_EQ(finetune_length(85, false).batch_size, 8);
  EXPECT_EQ(finetune_length(85, false).epochs, 100);
  EXPECT_EQ(finetune_length(85, false).patience, 10);
  EXPECT_EQ(finetune_length(60000, false).epochs, 20);
  EXPECT_EQ(finetune_length(60000, true).epochs, 50);
  EXPECT_EQ(finetune_length(60000, false).patience, 5);
  const TrainedBase trained("few");
  const BaseNetwork base = open_base({.name = trained.base()});
  EXPECT_EQ(plan_finetuning(base, "dark_spots", {}).config.train.best_by, "loss");
  try {
    plan_finetuning(base, "dark_spots", {.overrides = {"data.samples=2"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("increase data.samples"), std::string::npos)
        << error.what();
  }
}

TEST(Finetune, StagesUnfreezeMoreAndMore) {
  const TrainedBase trained("stages");
  const Finetuning plan = plan_finetuning(open_base({.name = trained.base()}), "dark_spots",
                                          {.train = "all", .overrides = settings(2)});
  const std::vector<Finetuning> stages =
      in_stages(plan, 1, [&](size_t i) { return trained.at("stage" + std::to_string(i)); });
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].config.train.freeze.size(), 3u);
  EXPECT_EQ(stages[1].config.train.freeze.size(), 2u);
  EXPECT_TRUE(stages[2].config.train.freeze.empty());
  EXPECT_TRUE(stages[1].config.model.new_layers.empty());
  EXPECT_EQ(stages[2].config.model.weights, trained.at("stage1") + "/checkpoints/best");
  for (size_t i = 0; i < 3; ++i)
    artel::Run(stages[i].config, {.out = trained.at("stage" + std::to_string(i)), .quiet = true})
        .train();
}

TEST(Finetune, RefusesDataThatCannotBeLearnt) {
  const TrainedBase trained("refuses");
  static const bool once = [] {
    data::register_dataset("one_class", [](const data::OpenOptions&) {
      return data::Split{spots(40, 1, false, 1), spots(4, 1, false, 2)};
    });
    data::register_dataset("lonely_class", [](const data::OpenOptions&) {
      Tensor images({20, 1, 12, 12}), labels({20}, DType::i32);
      labels.values<int32_t>()[3] = 1;
      const data::DatasetPtr set = data::tensor_dataset(images, labels, 2, {"many", "single"});
      return data::Split{set, set};
    });
    return true;
  }();
  (void)once;
  const BaseNetwork base = open_base({.name = trained.base()});
  try {
    plan_finetuning(base, "one_class");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has one class ('light0')"), std::string::npos)
        << error.what();
  }
  try {
    plan_finetuning(base, "lonely_class");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("class 'single' has"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace artel::transfer
