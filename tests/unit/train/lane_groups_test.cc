// Lanes that run together, in groups of any size, give the bits of lanes that run one by one.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "artel/base/pages.h"
#include "artel/nn/layers.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/train/step/stepper.h"

namespace artel {
namespace {

struct GroupedRun {
  Model model;
  TensorType x, y;
  std::string loss = "cross_entropy";
  int classes = 5;
  int64_t batch = 13;
  int lanes = 8;
};

class GroupedTraining {
 public:
  GroupedTraining(const GroupedRun& run, int together, int threads, size_t memory_limit = 0)
      : run_(run) {
    ModelGraph graph = inference_graph(run.model, batch_of(run.x, 1));
    const Program program(std::move(graph.graph), {}, choices_);
    parameters_ = Parameters(program.parameter_entries());
    for (const ParameterEntry& entry : parameters_.entries())
      parameters_.set(entry.name, nn::initial_value(3, entry.name, entry.shape,
                                                    graph.initialisers.at(entry.name)));
    stepper_ = std::make_unique<Stepper>(run.model, run.x, run.y, loss_by_name(run.loss),
                                         optim::sgd(0.05, {.momentum = 0.9}), parameters_, choices_,
                                         StepperOptions{.threads = threads,
                                                        .lanes = run.lanes,
                                                        .seed = 3,
                                                        .memory_limit = memory_limit,
                                                        .lanes_together = together,
                                                        .check_numbers = true,
                                                        .bucket_bytes = 4096});
  }

  // The weights, states and losses of two steps and of one with a smaller batch.
  std::vector<float> result() {
    std::vector<float> all;
    for (int step = 1; step <= 3; ++step) {
      const int64_t batch = step < 3 ? run_.batch : run_.batch / 2 + 1;
      Tensor x(batch_of(run_.x, batch).shape, run_.x.dtype);
      Tensor y(batch_of(run_.y, batch).shape, run_.y.dtype);
      Random random{9, static_cast<uint64_t>(step)};
      fill(x, random);
      fill(y, random);
      all.push_back(static_cast<float>(stepper_->step(x, y, step, 0.05f).loss()));
    }
    for (const ParameterEntry& entry : parameters_.entries()) {
      const Tensor tensor = parameters_.get(entry.name);
      all.insert(all.end(), tensor.values<float>().begin(), tensor.values<float>().end());
    }
    return all;
  }

  Stepper& stepper() { return *stepper_; }

 private:
  void fill(Tensor& tensor, Random& random) const {
    if (tensor.dtype() == DType::f32)
      for (float& v : tensor.values<float>()) v = random.normal();
    else
      for (int32_t& v : tensor.values<int32_t>())
        v = static_cast<int32_t>(random.below(run_.classes));
  }

  GroupedRun run_;
  KernelChoices choices_;
  Parameters parameters_;
  std::unique_ptr<Stepper> stepper_;
};

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void expect_same_for_all_groups(const GroupedRun& run) {
  const std::vector<float> one_by_one = GroupedTraining(run, 1, 1).result();
  for (const int together : {2, 3, 0})
    for (const int threads : {1, 2, 3})
      EXPECT_TRUE(equal_bits(one_by_one, GroupedTraining(run, together, threads).result()))
          << run.lanes << " lanes of " << run.batch << " samples, " << together << " together, "
          << threads << " threads";
}

const TensorType kLabel = {DType::i32, Shape{}};

TEST(LaneGroups, ConvolutionsOfEveryKind) {
  const Model model = nn::sequential(
      {nn::conv(24, {3, 3}, {.padding = {1, 1}}), nn::relu(),
       nn::conv(24, {3, 3}, {.padding = {1, 1}, .bias = false}), nn::batch_norm(), nn::relu(),
       nn::conv(32, {3, 3}, {.stride = {2, 2}, .padding = {1, 1}}), nn::relu(),
       nn::conv(40, {1, 1}), nn::relu(), nn::conv(48, {3, 3}, {.padding = {1, 1}}),
       nn::max_pool({2, 2}), nn::conv(32, {3, 3}, {.padding = {1, 1}}), nn::dropout(0.2),
       nn::flatten(), nn::dense(16), nn::activation("gelu"), nn::dense(5)});
  for (const auto& [batch, lanes] : {std::pair{13, 8}, {64, 8}, {40, 5}, {6, 8}})
    expect_same_for_all_groups({.model = model,
                                .x = {DType::f32, {3, 8, 8}},
                                .y = kLabel,
                                .batch = batch,
                                .lanes = lanes});
}

TEST(LaneGroups, NetworksOfTheZoo) {
  for (const std::string name : {"mlp", "lenet5", "vgg11_bn", "resnet18"}) {
    SCOPED_TRACE(name);
    const auto all = nn::model_list();
    const auto found = std::ranges::find(all, name, &nn::ModelDescription::name);
    ASSERT_NE(found, all.end());
    const bool small = found->input == Shape{3, 224, 224};
    expect_same_for_all_groups(
        {.model = nn::model_by_name(
             name, small ? nn::ModelOptions{.small_images = true} : nn::ModelOptions{}),
         .x = {DType::f32, small ? Shape{3, 32, 32} : found->input},
         .y = kLabel,
         .batch = 12,
         .lanes = 4});
  }
}

TEST(LaneGroups, RecurrentNetworks) {
  for (const char* cell : {"lstm 20", "gru 12"}) {
    SCOPED_TRACE(cell);
    const Model model = nn::parse_layers({"embedding 31 16", cell, "flatten", "dense 5"});
    for (const int64_t batch : {13, 40})
      expect_same_for_all_groups(
          {.model = model, .x = {DType::i32, {9}}, .y = kLabel, .classes = 5, .batch = batch});
  }
}

TEST(LaneGroups, Transformers) {
  for (const nn::ModelDescription& description : nn::model_list()) {
    if (description.name != "gpt2" && description.name != "llama" && description.name != "vit_tiny")
      continue;
    SCOPED_TRACE(description.name);
    const bool text = description.input_type == DType::i32;
    const Model model = nn::model_by_name(
        description.name, text ? nn::ModelOptions{.width = 24,
                                                  .depth = 2,
                                                  .heads = 2,
                                                  .positions = 9,
                                                  .vocabulary = 31}
                               : nn::ModelOptions{.width = 24, .depth = 2, .heads = 2, .patch = 4});
    expect_same_for_all_groups({.model = model,
                                .x = {description.input_type, text ? Shape{9} : Shape{3, 16, 16}},
                                .y = {DType::i32, text ? Shape{9} : Shape{}}});
  }
}

TEST(LaneGroups, MemoryLimitsMakeSmallerGroupsAndTheSameBits) {
  const GroupedRun run = {
      .model = nn::sequential({nn::dense(64), nn::relu(), nn::dense(64), nn::relu(), nn::dense(5)}),
      .x = {DType::f32, {32}},
      .y = kLabel,
      .batch = 32};
  GroupedTraining free(run, 0, 1);
  const std::vector<float> expected = free.result();
  const size_t lane = free.stepper().program(4).plan().activation_bytes;
  for (const int lanes : {1, 2, 5})
    EXPECT_TRUE(equal_bits(expected, GroupedTraining(run, 0, 1, lanes * lane).result())) << lanes;
}

size_t resident_bytes(const Memory& memory) {
  const std::span<std::byte> pages = pages_in(memory.host());
  std::vector<unsigned char> resident(pages.size() / page_bytes());
  EXPECT_EQ(::mincore(pages.data(), pages.size(), resident.data()), 0);
  return page_bytes() * static_cast<size_t>(
                            std::ranges::count_if(resident, [](unsigned char c) { return c & 1; }));
}

// Each thread adds the gradients of its lanes in a region of its own. Only the total stays.
TEST(LaneGroups, ThreadsReleaseTheSumsThatTheyHaveHandedOn) {
  GroupedTraining training({.model = nn::sequential({nn::dense(256), nn::relu(), nn::dense(256),
                                                     nn::relu(), nn::dense(5)}),
                            .x = {DType::f32, {256}},
                            .y = kLabel,
                            .batch = 4096,
                            .lanes = 4},
                           0, 2);
  std::vector<Memory> regions;
  training.stepper().set_sum_memory([&](size_t bytes) {
    regions.push_back(cpu().allocate(bytes));
    return regions.back();
  });
  training.result();
  ASSERT_EQ(regions.size(), 2u);
  const auto [least, most] = std::minmax({resident_bytes(regions[0]), resident_bytes(regions[1])});
  EXPECT_GT(most, regions[0].bytes() * 9 / 10);
  EXPECT_LT(least, regions[0].bytes() / 4);
}

}  // namespace
}  // namespace artel
