// A step gives the same bits for any number of threads, and with or without recomputation.
#include "artel/train/step/stepper.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "artel/nn/layers.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/train/step/memory_needs.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

nn::Layer block(int64_t channels) {
  return nn::residual(
      nn::chain({nn::named("conv1", nn::conv(channels, {3, 3}, {.padding = {1, 1}, .bias = false})),
                 nn::named("bn1", nn::batch_norm()), nn::relu(),
                 nn::named("conv2", nn::conv(channels, {3, 3}, {.padding = {1, 1}, .bias = false})),
                 nn::named("bn2", nn::batch_norm())}));
}

// Batch norm, dropout, residual sums, pooling: everything that could depend on the order of things.
Model small_network() {
  return nn::sequential({nn::conv(8, {3, 3}, {.padding = {1, 1}}), nn::relu(), block(8), block(8),
                         nn::max_pool({2, 2}), nn::dropout(0.2), nn::flatten(), nn::dense(16),
                         nn::activation("gelu"), nn::dense(5)});
}

struct Run {
  int threads = 1, lanes = 1;
  size_t memory_limit = 0;
  int64_t batch = 13;
  int steps = 4;
};

class Training {
 public:
  explicit Training(const Run& run) : run_(run) {
    const Model model = small_network();
    ModelGraph graph = inference_graph(model, batch_of(x_, 1));
    const Program program(std::move(graph.graph), {}, choices_);
    parameters_ = Parameters(program.parameter_entries());
    for (const ParameterEntry& entry : parameters_.entries())
      parameters_.set(entry.name, nn::initial_value(3, entry.name, entry.shape,
                                                    graph.initialisers.at(entry.name)));
    stepper_ = std::make_unique<Stepper>(model, x_, y_, loss_by_name("cross_entropy"),
                                         optim::sgd(0.05, {.momentum = 0.9}), parameters_, choices_,
                                         StepperOptions{.threads = run.threads,
                                                        .lanes = run.lanes,
                                                        .seed = 3,
                                                        .memory_limit = run.memory_limit,
                                                        .check_numbers = true});
  }

  // The weights and states after training, as one sequence of floats.
  std::vector<float> weights() {
    Tensor x(batch_of(x_, run_.batch).shape), y({run_.batch}, DType::i32);
    for (int step = 1; step <= run_.steps; ++step) {
      Random random{9, static_cast<uint64_t>(step)};
      for (float& v : x.values<float>()) v = random.normal();
      for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(5));
      loss_ = stepper_->step(x, y, step, 0.05f).loss();
    }
    std::vector<float> all;
    for (const ParameterEntry& entry : parameters_.entries()) {
      const Tensor tensor = parameters_.get(entry.name);
      all.insert(all.end(), tensor.values<float>().begin(), tensor.values<float>().end());
    }
    return all;
  }

  Stepper& stepper() { return *stepper_; }
  double loss() const { return loss_; }

 private:
  Run run_;
  TensorType x_ = {DType::f32, {3, 8, 8}}, y_ = {DType::i32, Shape{}};
  KernelChoices choices_;
  Parameters parameters_;
  std::unique_ptr<Stepper> stepper_;
  double loss_ = 0;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Stepper, SameBitsForAnyNumberOfThreads) {
  for (const int lanes : {1, 3, 8}) {
    SCOPED_TRACE(lanes);
    const std::vector<float> one = Training({.threads = 1, .lanes = lanes}).weights();
    for (const int threads : {2, 3, 8})
      EXPECT_TRUE(same_bits(one, Training({.threads = threads, .lanes = lanes}).weights()))
          << threads << " threads";
  }
}

TEST(Stepper, TheNumberOfLanesDecidesTheBits) {
  const std::vector<float> one = Training({.lanes = 5}).weights();
  EXPECT_FALSE(same_bits(one, Training({.lanes = 4}).weights()));
}

TEST(Stepper, RecomputationGivesTheSameBits) {
  Training free({});
  const std::vector<float> expected = free.weights();
  const size_t needed = free.stepper().program(13).plan().activation_bytes;
  bool saved = false;
  for (const double share : {0.9, 0.8, 0.7, 0.6}) {
    const auto limit = static_cast<size_t>(share * static_cast<double>(needed));
    try {
      Training limited({.memory_limit = limit});
      EXPECT_TRUE(same_bits(expected, limited.weights())) << share;
      EXPECT_LE(limited.stepper().program(13).plan().activation_bytes, limit);
      check_plan(limited.stepper().program(13).graph(), limited.stepper().program(13).plan());
      saved = true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory);
    }
  }
  EXPECT_TRUE(saved);
}

TEST(Stepper, SaysTheLeastMemory) {
  try {
    Training({.memory_limit = 1000}).weights();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with("memory_limit: got 1000 B for the activations, expected at least "))
        << error.what();
  }
}

// 13 samples in 4 lanes are lanes of 3 and of 4: what is said must do for both, and less must not.
TEST(Stepper, SaysTheLeastMemoryOfUnevenLanes) {
  const auto complaint = [](size_t limit) -> std::string {
    return artel::error_of(
        [&] { Training({.lanes = 4, .memory_limit = limit, .steps = 1}).weights(); });
  };
  const std::string all = complaint(1000);
  const std::string before = "expected at least ";
  const size_t at = all.find(before);
  ASSERT_NE(at, std::string::npos) << all;
  const size_t least = std::stoul(all.substr(at + before.size()));
  EXPECT_EQ(all.substr(all.find("KiB")).substr(0, 3), "KiB");
  EXPECT_EQ(complaint(least * 1024), "");
  EXPECT_TRUE(complaint((least - 1) * 1024).ends_with(all.substr(at))) << all;
}

TEST(Stepper, PlanNeverOverlapsLiveBuffers) {
  Training training({});
  check_plan(training.stepper().program(7).graph(), training.stepper().program(7).plan());
}

struct SmallModel {
  nn::ModelOptions options = {};
  Shape sample;
};

// A network of the zoo at a size that compiles at once.
SmallModel small_variant(const nn::ModelDescription& model) {
  if (model.input_type == DType::i32)
    return {{.width = 24, .depth = 2, .heads = 2, .positions = 9, .vocabulary = 31}, {9}};
  if (model.name.starts_with("vit_"))
    return {{.width = 24, .depth = 2, .heads = 2, .patch = 4}, {3, 16, 16}};
  if (model.name.starts_with("mobilenet_") || model.name.starts_with("resnet50_original"))
    return {{}, {3, 64, 64}};
  if (model.input == Shape{3, 224, 224}) return {{.small_images = true}, {3, 32, 32}};
  return {{}, model.input};
}

// Lanes of two and of one sample, which may recompute differently, are added place by place; the
// stepper checks that each place holds the same. Parameters whose gradients need no sum over a
// batch of one, such as a class token's, become ready at other times there.
TEST(Stepper, EveryModelSumsTheSameThingsInLanesOfAnySize) {
  for (const nn::ModelDescription& description : nn::model_list()) {
    const SmallModel small = small_variant(description);
    const Model model = nn::model_by_name(description.name, small.options);
    const TensorType x = {description.input_type, small.sample};
    ModelGraph graph = inference_graph(model, batch_of(x, 1));
    const Shape output = graph.graph.output("prediction").shape();
    KernelChoices choices;
    Parameters parameters(Program(std::move(graph.graph), {}, choices).parameter_entries());
    // An arbitrary loss: the network's output compared with zeros.
    const TensorType y = {DType::f32, Shape(std::vector<int64_t>(output.extents().begin() + 1,
                                                                 output.extents().end()))};
    const auto stepper = [&](size_t limit) {
      return std::make_unique<Stepper>(model, x, y, loss_by_name("mse"), optim::sgd(0.1),
                                       parameters, choices,
                                       StepperOptions{.lanes = 2, .memory_limit = limit});
    };
    const auto whole = stepper(0);
    check_plan(whole->program(2).graph(), whole->program(2).plan());
    const size_t bytes = whole->program(2).plan().activation_bytes;
    for (const size_t limit : {size_t{0}, bytes * 3 / 4}) {
      try {
        EXPECT_FALSE(stepper(limit)->buckets(3).empty()) << description.name;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::memory) << description.name << ": " << error.what();
      }
    }
  }
}

// The gradients of lanes with one and with two samples add up to those of one lane.
TEST(Stepper, LanesOfDifferentSizesGiveTheGradientOfOne) {
  const Model model = nn::parse_layers({"dense 8", "class_token", "flatten", "dense 2"});
  const TensorType x = {DType::f32, {3, 8}}, y = {DType::f32, {2}};
  const auto weights = [&](int lanes) {
    KernelChoices choices;
    ModelGraph graph = inference_graph(model, batch_of(x, 1));
    const Program program(std::move(graph.graph), {}, choices);
    Parameters parameters(program.parameter_entries());
    for (const ParameterEntry& entry : parameters.entries())
      parameters.set(entry.name, nn::initial_value(3, entry.name, entry.shape,
                                                   graph.initialisers.at(entry.name)));
    Stepper stepper(model, x, y, loss_by_name("mse"), optim::sgd(0.1), parameters, choices,
                    {.lanes = lanes});
    Tensor inputs({3, 3, 8}), targets({3, 2});
    Random random{7};
    for (float& v : inputs.values<float>()) v = random.normal();
    for (float& v : targets.values<float>()) v = random.normal();
    stepper.step(inputs, targets, 1, 0.1f);
    std::vector<float> all;
    for (const ParameterEntry& entry : parameters.entries()) {
      const Tensor tensor = parameters.get(entry.name);
      all.insert(all.end(), tensor.values<float>().begin(), tensor.values<float>().end());
    }
    return all;
  };
  const std::vector<float> one = weights(1);
  for (const int lanes : {2, 3}) {
    const std::vector<float> several = weights(lanes);
    for (size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(several[i], one[i], 1e-6) << lanes;
  }
}

// Eight lanes on three threads are the subtrees {0, 1}; {2, 3} and {4}; {5} and {6, 7}.
TEST(Stepper, KnowsHowManySumsItKeeps) {
  EXPECT_EQ(Stepper::sums_in_memory(1, 1, 0), 1);
  EXPECT_EQ(Stepper::sums_in_memory(1, 2, 0), 1);
  EXPECT_EQ(Stepper::sums_in_memory(2, 2, 0), 2);
  EXPECT_EQ(Stepper::sums_in_memory(2, 1, 0), 1);
  EXPECT_EQ(Stepper::sums_in_memory(3, 1, 0), 1);
  EXPECT_EQ(Stepper::sums_in_memory(8, 2, 0), 2);
  EXPECT_EQ(Stepper::sums_in_memory(8, 3, 0), 5);
}

// The head's gradient of a shared table is computed where the sum of both will be.
TEST(Stepper, TiedWeightsHaveNoGradientOfTheirOwnAmongActivations) {
  const Model model = nn::model_by_name(
      "gpt2", {.classes = 3000, .width = 32, .depth = 1, .heads = 2, .positions = 8});
  const TensorType tokens = {DType::i32, {8}};
  ModelGraph graph = inference_graph(model, batch_of(tokens, 1));
  KernelChoices choices;
  Parameters parameters(Program(std::move(graph.graph), {}, choices).parameter_entries());
  Stepper stepper(model, tokens, tokens, loss_by_name("cross_entropy"), optim::sgd(0.1), parameters,
                  choices, {});
  const Plan& plan = stepper.program(1).plan();
  check_plan(stepper.program(1).graph(), plan);
  const size_t table = 3000 * 32 * sizeof(float);  // of which the gradient of the tokens is made
  EXPECT_LT(plan.activation_bytes, 2 * table);
}

// Each thread has lanes of its own, unless more than a fifth of the threads' time would be lost.
TEST(Stepper, ThreadsShareKernelsWhereLanesAreFew) {
  for (const auto& [lanes, threads, groups] :
       {std::tuple{8, 1, 1}, {8, 2, 2}, {8, 4, 4}, {8, 8, 8}, {5, 2, 2}, {4, 5, 4}, {64, 6, 6}})
    EXPECT_EQ(Stepper::side_by_side(lanes, threads, 0), groups) << lanes << " on " << threads;
  for (const auto& [lanes, threads] : {std::pair{1, 2}, {3, 2}, {2, 4}, {5, 4}, {8, 6}, {8, 16}})
    EXPECT_EQ(Stepper::side_by_side(lanes, threads, 0), 1) << lanes << " on " << threads;
  EXPECT_EQ(Stepper::side_by_side(0, 2, 0), 1) << "a worker that stands by";
}

// The sum of a second group may take a fifth of the memory of eight lanes, those of three more a
// third of that each.
TEST(Stepper, ThreadsShareKernelsWhereGradientsAreLarge) {
  EXPECT_EQ(Stepper::side_by_side(8, 2, 1.5), 2);
  EXPECT_EQ(Stepper::side_by_side(8, 2, 1.7), 1);
  EXPECT_EQ(Stepper::side_by_side(8, 4, 0.5), 4);
  EXPECT_EQ(Stepper::side_by_side(8, 4, 0.6), 1);
  EXPECT_EQ(Stepper::side_by_side(8, 1, 100), 1);
  EXPECT_EQ(Stepper::sums_in_memory(8, 2, 1.7), 1);
}

TEST(Stepper, ThreadsOfLargeDenseLayersHaveOneSum) {
  const TensorType x = {DType::f32, {8}}, y = {DType::f32, {2}};
  const auto groups = [&](const std::string& width) {
    const Model model = nn::parse_layers({"dense " + width, "dense " + width, "dense 2"});
    KernelChoices choices;
    Parameters parameters(
        Program(inference_graph(model, batch_of(x, 1)).graph, {}, choices).parameter_entries());
    Stepper stepper(model, x, y, loss_by_name("mse"), optim::sgd(0.1), parameters, choices,
                    {.threads = 2, .lanes = 8});
    stepper.step(Tensor({64, 8}), Tensor({64, 2}), 1, 0.1f);
    // The forecast knows a lane's program without those of others.
    EXPECT_EQ(memory_needs(Program(stepper.graph(8), {}, choices), 8, 2, 0).groups,
              stepper.slots());
    return stepper.slots();
  };
  EXPECT_EQ(groups("4"), 2);
  EXPECT_EQ(groups("512"), 1);
}

}  // namespace
}  // namespace artel
