// Training steps on an OpenCL device, compared with the processor.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/nn/layers.h"
#include "artel/nn/recurrent.h"
#include "artel/nn/zoo/registry.h"
#include "artel/predict/batches.h"
#include "artel/train/step/stepper.h"
#include "tests/support/error_of.h"
#include "tests/support/opencl.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

struct DeviceTask {
  std::string name;
  Model model;
  TensorType x, y;
  int classes;
};

constexpr int kDeviceLanes = 2, kDeviceSteps = 20;
constexpr int64_t kDeviceBatch = 8;

// A few steps from the same weights on the same data.
class DeviceTraining {
 public:
  DeviceTraining(const DeviceTask& task, Device& device, bool exact_convolutions = false,
                 int lanes = kDeviceLanes)
      : task_(task) {
    choices_.device = &device;
    choices_.exact_convolutions = exact_convolutions;
    ModelGraph graph = inference_graph(task.model, batch_of(task.x, 1));
    const Program program(std::move(graph.graph), {}, choices_);
    parameters_ = Parameters(program.parameter_entries());
    for (const ParameterEntry& entry : parameters_.entries())
      parameters_.set(entry.name, nn::initial_value(3, entry.name, entry.shape,
                                                    graph.initialisers.at(entry.name)));
    stepper_ = std::make_unique<Stepper>(
        task.model, task.x, task.y, loss_by_name("cross_entropy"),
        optim::sgd(0.02, {.momentum = 0.9}), parameters_, choices_,
        StepperOptions{
            .threads = 2, .lanes = lanes, .seed = 3, .metrics = {metric_by_name("accuracy")}});
  }

  double step(int number) {
    const auto [x, y] = batch(number);
    return stepper_->step(x, y, number, 0.02f).loss();
  }

  // The sums of all lanes, without an update.
  std::vector<float> sums(int number, std::span<LaneNoise> noise) {
    const auto [x, y] = batch(number);
    std::vector<float> total;
    stepper_->compute(
        {.range = {0, stepper_->lanes()}, .batch = kDeviceBatch, .step = number, .noise = noise}, x,
        y, [&](int, const std::vector<Memory>& partials) {
          const std::span<const float> values = partials.front().floats();
          total.assign(values.begin(), values.end());
        });
    return total;
  }

  const Parameters& parameters() const { return parameters_; }
  Stepper& stepper() { return *stepper_; }

 private:
  std::pair<Tensor, Tensor> batch(int number) const {
    Tensor x(batch_of(task_.x, kDeviceBatch).shape, task_.x.dtype);
    Tensor y(batch_of(task_.y, kDeviceBatch).shape, DType::i32);
    Random random{9, static_cast<uint64_t>(number)};
    const auto below = static_cast<uint64_t>(task_.classes);
    if (task_.x.dtype == DType::i32)
      for (int32_t& v : x.values<int32_t>()) v = static_cast<int32_t>(random.below(below));
    else
      for (float& v : x.values<float>()) v = random.normal();
    for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(below));
    return {x, y};
  }

  DeviceTask task_;
  KernelChoices choices_;
  Parameters parameters_;
  std::unique_ptr<Stepper> stepper_;
};

double norm_of(const Tensor& tensor) {
  double sum = 0;
  for (const float v : tensor.values<float>()) sum += double{v} * v;
  return std::sqrt(sum);
}

double difference_of(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const double d = double{a.values<float>()[static_cast<size_t>(i)]} -
                     b.values<float>()[static_cast<size_t>(i)];
    sum += d * d;
  }
  return std::sqrt(sum);
}

// VGG with few channels: the zoo's have too many for a driver on the processor.
Model narrow_vgg() {
  std::vector<nn::Layer> layers;
  for (const int64_t channels : {8, 16, 24}) {
    for (nn::Layer& layer :
         std::vector<nn::Layer>{nn::conv(channels, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(),
                                nn::relu(), nn::max_pool({2, 2})})
      layers.push_back(std::move(layer));
  }
  for (nn::Layer& layer : std::vector<nn::Layer>{nn::flatten(), nn::dense(32), nn::relu(),
                                                 nn::dropout(0.5), nn::dense(10)})
    layers.push_back(std::move(layer));
  return nn::sequential(std::move(layers));
}

std::vector<DeviceTask> device_tasks() {
  const TensorType label = {DType::i32, Shape{}}, tokens = {DType::i32, {12}};
  return {
      {"mlp",
       nn::sequential({nn::dense(32), nn::relu(), nn::dropout(0.2), nn::dense(10)}),
       {DType::f32, {20}},
       label,
       10},
      {"cnn",
       nn::sequential({nn::conv(8, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                       nn::max_pool({2, 2}), nn::conv(12, {3, 3}), nn::relu(), nn::flatten(),
                       nn::dense(10)}),
       {DType::f32, {3, 10, 10}},
       label,
       10},
      {"gpt",
       nn::model_by_name(
           "gpt2",
           {.classes = 17, .width = 24, .depth = 2, .heads = 3, .positions = 12, .dropout = 0.1}),
       tokens, tokens, 17},
      {"vgg", narrow_vgg(), {DType::f32, {3, 16, 16}}, label, 10},
      {"resnet18",
       nn::model_by_name("resnet18", {.classes = 10, .small_images = true, .width = 8}),
       {DType::f32, {3, 16, 16}},
       label,
       10},
      {"bert",
       nn::model_by_name("bert_classifier", {.classes = 5,
                                             .width = 24,
                                             .depth = 2,
                                             .heads = 3,
                                             .positions = 12,
                                             .vocabulary = 17,
                                             .dropout = 0.1}),
       tokens, label, 5},
      {"vit",
       nn::model_by_name("vit_tiny",
                         {.classes = 10, .width = 24, .depth = 2, .heads = 3, .patch = 4}),
       {DType::f32, {3, 16, 16}},
       label,
       10},
      {"lstm",
       nn::sequential({nn::lstm(16, {.last = true}), nn::dense(10)}),
       {DType::f32, {12, 8}},
       label,
       10}};
}

class OnOpenCl : public ::testing::TestWithParam<DeviceTask> {};

// Up to rounding, of which other algorithms for convolutions on the processor give an idea: batch
// norms that see few numbers amplify it.
TEST_P(OnOpenCl, StepsMatchThoseOfTheProcessor) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  constexpr double kAsNoisy = 8;
  DeviceTraining here(GetParam(), cpu()), rounded(GetParam(), cpu(), true);
  DeviceTraining there(GetParam(), *device), again(GetParam(), *device);
  double noise = 0;  // the largest so far
  for (int step = 1; step <= kDeviceSteps; ++step) {
    const double loss = here.step(step), computed = there.step(step);
    noise = std::max(noise, std::abs(rounded.step(step) - loss));
    ASSERT_NEAR(computed, loss, 1e-4 * loss + kAsNoisy * noise) << "step " << step;
    ASSERT_EQ(again.step(step), computed) << "step " << step;
  }
  for (const ParameterEntry& entry : here.parameters().entries()) {
    const Tensor expected = here.parameters().get(entry.name);
    EXPECT_LE(difference_of(there.parameters().get(entry.name), expected),
              2e-3 * (norm_of(expected) + 1e-3) +
                  kAsNoisy * difference_of(rounded.parameters().get(entry.name), expected))
        << entry.name;
    EXPECT_EQ(difference_of(there.parameters().get(entry.name), again.parameters().get(entry.name)),
              0)
        << entry.name;
  }
}

// Up go the parameters once in a step, and the samples; down come the gradients once, and the
// metrics of each lane.
TEST_P(OnOpenCl, StepsCopyWhatTheyMust) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  DeviceTraining training(GetParam(), *device);
  training.step(1);
  const CopiedBytes before = device->copied();
  training.step(2);
  const CopiedBytes after = device->copied();
  int64_t parameters = 0;
  for (const ParameterEntry& entry : training.parameters().entries())
    parameters += static_cast<int64_t>((entry.bytes() + 63) / 64 * 64);
  const int64_t samples =
      kDeviceBatch * 4 * (GetParam().x.shape.elements() + GetParam().y.shape.elements());
  const auto gradients = static_cast<int64_t>(
      training.stepper().program(kDeviceBatch / kDeviceLanes).plan().gradient_bytes);
  constexpr int64_t kScalars = 64;  // of a lane: its weight, loss, and metrics
  EXPECT_GE(after.to_device - before.to_device, parameters + samples);
  EXPECT_LE(after.to_device - before.to_device, parameters + samples + kDeviceLanes * kScalars);
  EXPECT_LE(after.from_device - before.from_device, gradients + kDeviceLanes * kScalars);
  EXPECT_GE(after.from_device - before.from_device, gradients);
}

// Where each lane's gradients are needed, the processor adds them.
TEST_P(OnOpenCl, AddsLanesWithTheBitsOfTheProcessor) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  constexpr int kUnevenLanes = 3;
  DeviceTraining training(GetParam(), *device, false, kUnevenLanes);
  std::vector<LaneNoise> noise(kUnevenLanes);
  const std::vector<float> there = training.sums(1, {}), here = training.sums(1, noise);
  EXPECT_GT(noise[1].squares, 0);
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) ASSERT_EQ(there[i], here[i]) << i;
  EXPECT_EQ(training.sums(1, {}), there);
}

// Empty lanes add nothing, and the others stand for them in observations.
TEST_P(OnOpenCl, RunsFewerSamplesThanLanes) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  DeviceTraining here(GetParam(), cpu(), false, 2 * kDeviceBatch);
  DeviceTraining there(GetParam(), *device, false, 2 * kDeviceBatch);
  const double loss = here.step(1);
  EXPECT_NEAR(there.step(1), loss, 1e-3 * loss);
}

// All that is left for the processor is what its inputs and results need.
TEST_P(OnOpenCl, ComputesEverythingThere) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  DeviceTraining training(GetParam(), *device);
  const Plan& plan = training.stepper().program(kDeviceBatch / kDeviceLanes).plan();
  for (const PlannedKernel& kernel : plan.kernels)
    EXPECT_TRUE(kernel.op == "copy" || kernel.op == "copy gradient" ||
                plan.buffers[static_cast<size_t>(kernel.outputs[0])].device == device)
        << kernel.op << " of '" << kernel.layer << "'";
}

TEST_P(OnOpenCl, RefusesPartsOfNetworks) {
  Device* const device = tests::opencl_device();
  if (!device) return;
  DeviceTraining training(GetParam(), *device);
  const std::string message =
      error_of([&] { training.stepper().set_part([](Program&, int64_t) {}); });
  EXPECT_NE(message.find("runs whole networks only"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Networks, OnOpenCl, ::testing::ValuesIn(device_tasks()),
                         [](const auto& info) { return info.param.name; });

TrainerOptions options_on(const std::string& device) {
  TrainerOptions options = trainer_options({});
  options.device = device;
  return options;
}

NamedTensors trained_on(Cluster& cluster, const std::string& device, FitOptions fit) {
  Trainer trainer(cluster, network(), options_on(device));
  fit.batch_size = 13;
  trainer.fit(samples(), fit);
  return trainer.weights();
}

TEST(TrainingOnOpenCl, SameBitsOnAnyNumberOfWorkers) {
  if (!tests::opencl_device()) return;
  Cluster alone;
  const NamedTensors expected = trained_on(alone, "opencl", {.epochs = 2});
  on_workers(2, [&](int, Cluster& cluster) {
    EXPECT_TRUE(same_bits(flat(trained_on(cluster, "opencl:0", {.epochs = 2})), flat(expected)));
  });
}

// A mix would drift apart.
TEST(TrainingOnOpenCl, RefusesAMixOfDevices) {
  if (!tests::opencl_device()) return;
  std::vector<std::string> messages(2);
  on_workers(2, [&](int rank, Cluster& cluster) {
    messages[static_cast<size_t>(rank)] =
        error_of([&] { trained_on(cluster, rank == 0 ? "cpu" : "opencl:0", {.epochs = 1}); });
  });
  for (const std::string& message : messages)
    EXPECT_NE(message.find("device"), std::string::npos) << message;
}

TEST(TrainingOnOpenCl, ContinuesACheckpointOfAnotherDevice) {
  if (!tests::opencl_device()) return;
  Cluster cluster;
  const NamedTensors expected = trained_on(cluster, "cpu", {.epochs = 4});
  for (const auto& [first, second] : {std::pair{"cpu", "opencl:0"}, std::pair{"opencl:0", "cpu"}}) {
    const TemporaryFolder folder;
    FitOptions fit = {.epochs = 2, .save_every = 1};
    fit.checkpoints = folder.path();
    trained_on(cluster, first, fit);
    fit.epochs = 4;
    fit.resume = true;
    const NamedTensors got = trained_on(cluster, second, fit);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(difference_of(got[i].tensor, expected[i].tensor),
                5e-3 * (norm_of(expected[i].tensor) + 1e-2))
          << got[i].name << ": " << first << ", then " << second;
  }
}

}  // namespace
}  // namespace artel
