// Ten training steps of small networks must follow PyTorch: graph, differentiation, fusion, plan,
// kernels and update rule together. tests/golden/make_parity.py and make_transformers.py make the
// files.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "artel/checkpoint/safetensors.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/classic.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/resnet.h"
#include "artel/nn/zoo/vgg.h"
#include "artel/nn/zoo/vit.h"
#include "artel/optim/optimizer.h"
#include "tests/support/opencl.h"

namespace artel {
namespace {

class Golden {
 public:
  explicit Golden(const std::string& name) {
    for (const NamedTensor& entry : checkpoint::read_safetensors(std::string(ARTEL_GOLDEN_DIR) +
                                                                 "/parity_" + name + ".safetensors")
                                        .tensors)
      tensors_.emplace(entry.name, entry.tensor);
  }

  const Tensor& operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    require(found != tensors_.end(), ErrorKind::not_found, "no tensor '{}' in the file", name);
    return found->second;
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

// The network's output, which a training step does not keep otherwise.
Metric logits() {
  return {.name = "logits", .sums = [](Value prediction, Value) { return prediction; }};
}

TensorType type_of(const Tensor& tensor) { return {tensor.dtype(), tensor.shape()}; }

// Trains with SGD of rate 0.02 and momentum 0.9, as the files were made.
class SmallTrainer {
 public:
  SmallTrainer(const Model& model, const Golden& golden, int threads, KernelChoices choices)
      : golden_(golden),
        pool_(threads, limit_library_threads),
        program_(training_graph(model, type_of(golden["x"]), type_of(golden["y"]),
                                loss_by_name("cross_entropy"), {}, {logits()})
                     .graph,
                 {.threads = threads}, choices),
        parameters_(program_.parameter_entries()),
        frame_(program_, parameters_) {
    check_plan(program_.graph(), program_.plan());
    for (const ParameterEntry& entry : parameters_.entries()) {
      parameters_.set(entry.name, golden["initial." + entry.name]);
      momentum_[entry.name].resize(parameters_.values(entry).size());
    }
  }

  // A step may reuse the memory of its inputs, so they are set each time.
  float step() {
    frame_.set_input("x", golden_["x"]);
    frame_.set_input("y", golden_["y"]);
    frame_.set_input("weight", Tensor::from<float>({}, {1}));
    program_.run(frame_, pool_, {.check_numbers = true});
    ++steps_;
    const Graph& graph = program_.graph();
    const float weight = graph.has_output("loss_weight") ? frame_.scalar("loss_weight") : 1;
    std::map<ValueId, double> momentum_of_state;
    for (const StateUpdate& update : graph.state_updates())
      momentum_of_state[update.state] = update.momentum;
    for (const GradientSlot& slot : program_.plan().gradients) {
      const ParameterEntry& entry = parameters_.entry(graph.value(slot.value).name);
      const std::span<float> values = parameters_.values(entry);
      const std::span<const float> observed =
          frame_.gradients().subspan(slot.offset / sizeof(float), values.size());
      if (slot.is_state) {
        const auto momentum = static_cast<float>(momentum_of_state.at(slot.value));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] += momentum * (observed[i] - values[i]);
      } else {
        const std::span<float> state = momentum_[entry.name];
        optimizer_->update(pool_, {entry.name}, steps_, 0.02f, 1 / weight, values, observed,
                           {&state, 1});
      }
    }
    return frame_.scalar("loss") / weight;
  }

  const Parameters& parameters() const { return parameters_; }
  Tensor prediction() const { return frame_.output(Metrics::output_of(logits().name)); }

 private:
  const Golden& golden_;
  ThreadPool pool_;
  Program program_;
  Parameters parameters_;
  Frame frame_;
  std::map<std::string, std::vector<float>> momentum_;
  std::unique_ptr<optim::Optimizer> optimizer_ =
      optim::make_optimizer(optim::sgd(0.02, {.momentum = 0.9}));
  int64_t steps_ = 0;
};

double largest_difference(const Tensor& got, const Tensor& expected) {
  double worst = 0;
  const std::span<const float> a = got.values<float>(), b = expected.values<float>();
  for (size_t i = 0; i < b.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

// The same, relative to the largest magnitude of the tensor.
double relative_error(const Tensor& got, const Tensor& expected) {
  double scale = 1e-3;
  for (const float value : expected.values<float>())
    scale = std::max(scale, static_cast<double>(std::fabs(value)));
  return largest_difference(got, expected) / scale;
}

struct GoldenModel {
  std::string file;
  Model model;
};

std::vector<GoldenModel> all_cases() {
  return {
      {"mlp", nn::mlp({48, 32})},
      {"lenet5", nn::lenet5()},
      {"vgg11_bn",
       nn::vgg(11, {.classes = 10, .batch_norm = true, .small_images = true, .width = 3})},
      {"resnet18", nn::resnet(18, {.classes = 10, .small_images = true, .width = 3})},
      {"resnet8", nn::cifar_resnet(8, {.width = 8})},
      {"gpt2", nn::gpt2({.vocabulary = 40, .positions = 32, .width = 24, .depth = 2, .heads = 3})},
      {"bert", nn::bert({.vocabulary = 50,
                         .positions = 20,
                         .width = 24,
                         .depth = 2,
                         .heads = 3,
                         .head = nn::BertHead::pretraining})},
      {"vit", nn::vit({.classes = 10, .patch = 4, .width = 24, .depth = 2, .heads = 3})},
      {"gpt2_variant", nn::gpt2({.vocabulary = 40,
                                 .positions = 32,
                                 .width = 12,
                                 .depth = 1,
                                 .heads = 3,
                                 .hidden = 20,
                                 .activation = "silu",
                                 .epsilon = 1e-2,
                                 .untied_head = true})},
      {"bert_variant", nn::bert({.vocabulary = 50,
                                 .positions = 20,
                                 .width = 12,
                                 .depth = 1,
                                 .heads = 3,
                                 .hidden = 20,
                                 .activation = "gelu_tanh",
                                 .epsilon = 1e-3,
                                 .untied_head = true,
                                 .head = nn::BertHead::pretraining})},
      {"vit_variant", nn::vit({.classes = 10,
                               .patch = 4,
                               .width = 12,
                               .depth = 1,
                               .heads = 3,
                               .hidden = 20,
                               .activation = "silu",
                               .epsilon = 1e-2})},
      {"lstm", nn::parse_layers({"rnn: lstm 7 layers 2 bidirectional last", "head: dense 3"})},
      {"gru", nn::parse_layers({"rnn: gru 17 layers 2", "head: dense 3"})},
      {"lstm_padded", nn::parse_layers({"embedding: embedding 11 6",
                                        "rnn: lstm 8 bidirectional last mask x", "head: dense 4"})},
      {"gru_padded",
       nn::parse_layers({"embedding: embedding 11 6", "rnn: gru 8 layers 2 last no_bias mask x",
                         "head: dense 4"})}};
}

struct ParitySetting {
  int threads = 1;
  bool exact_convolutions = false;
  bool on_opencl = false;
};

KernelChoices choices_on(Device& device, bool exact_convolutions) {
  KernelChoices choices;
  choices.exact_convolutions = exact_convolutions;
  choices.device = &device;
  return choices;
}

class Parity : public ::testing::TestWithParam<ParitySetting> {};

TEST_P(Parity, TenStepsFollowPyTorch) {
  Device* const device = GetParam().on_opencl ? tests::opencl_device() : &cpu();
  if (!device) return;
  for (const GoldenModel& c : all_cases()) {
    const Golden golden(c.file);
    SmallTrainer trainer(c.model, golden, GetParam().threads,
                         choices_on(*device, GetParam().exact_convolutions));
    bool first = true;
    for (const float expected : golden["losses"].values<float>()) {
      EXPECT_NEAR(trainer.step(), expected, 1e-4 * expected) << c.file;
      if (std::exchange(first, false)) {
        EXPECT_LT(largest_difference(trainer.prediction(), golden["logits"]), 1e-4) << c.file;
      }
    }
    for (const ParameterEntry& entry : trainer.parameters().entries())
      EXPECT_LT(relative_error(trainer.parameters().get(entry.name), golden["final." + entry.name]),
                1e-3)
          << c.file << " " << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, Parity,
                         ::testing::Values(ParitySetting{1, false}, ParitySetting{2, false},
                                           ParitySetting{1, true}, ParitySetting{1, false, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.threads) + "_threads" +
                                  (info.param.exact_convolutions ? "_exact" : "") +
                                  (info.param.on_opencl ? "_opencl" : "");
                         });

}  // namespace
}  // namespace artel
