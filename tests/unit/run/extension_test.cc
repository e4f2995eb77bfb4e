// Parts registered by a program are usable from TOML.
#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/data/sets.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/nn/layers.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/run.h"
#include "artel/tensor/npy.h"
#include "artel/train/strategies/registry.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

// Two clouds of points; `seed` of the run decides what is cut off for testing.
data::Split clouds(const data::OpenOptions& options) {
  Tensor x({60, 2}), y({60}, DType::i32);
  Random random{9};
  for (size_t i = 0; i < 60; ++i) {
    y.values<int32_t>()[i] = static_cast<int32_t>(i % 2);
    for (size_t k = 0; k < 2; ++k)
      x.values<float>()[2 * i + k] = random.normal() + (i % 2 ? 2.0f : -2.0f);
  }
  return data::split(data::tensor_dataset(x, y), options.test_fraction, options.seed);
}

void register_all() {
  static const bool once = [] {
    data::register_dataset("clouds", clouds);
    nn::register_layer("twice", "[TIMES]", [](nn::LayerWords& words) {
      const double factor = words.more() ? words.number("times", 0, 100) : 2;
      return nn::Layer("twice", [factor](nn::Build&, Value x) { return mul_scalar(x, factor); });
    });
    nn::register_model({.name = "one_layer", .text = "for tests", .input = {2}},
                       [](const nn::ModelOptions& options) {
                         return nn::sequential({nn::dense(options.classes)});
                       });
    register_loss("halved", [](Value prediction, Value target) {
      return mul_scalar(cross_entropy(prediction, target), 0.5);
    });
    register_metric(top_k(2));
    optim::register_optimizer(optim::custom(
        0.05, {.name = "descent",
               .update =
                   [](const optim::CustomStep& step) {
                     for (size_t i = 0; i < step.parameter.size(); ++i)
                       step.parameter[i] -= step.learning_rate *
                                            static_cast<float>(step.settings.at("factor")) *
                                            step.gradient[i];
                   },
               .settings = {{"factor", 1}}}));
    return true;
  }();
  EXPECT_TRUE(once);
}

artel::RunResult trained(const TemporaryFolder& folder, const std::string& name,
                         const std::string& model, const std::string& train) {
  const std::filesystem::path file = folder / (name + ".toml");
  write_file_atomically(file, fmt::format(R"([data]
set = "clouds"
[model]
{}
[train]
batch_size = 9
epochs = 3
{}
[cluster]
threads = 1
lanes = 3
)",
                                          model, train));
  artel::Run run(file, {.out = (folder / name).string(), .quiet = true});
  return run.train();
}

TEST(Extensions, AreUsableFromToml) {
  register_all();
  const TemporaryFolder folder;
  const RunResult own = trained(folder, "own", R"(name = "one_layer")", R"(loss = "halved"
metrics = ["accuracy", "top 2"]
optimizer = { name = "descent", factor = 2 })");
  EXPECT_GT(own.fit.last.test_accuracy, 0.9);
  EXPECT_EQ(own.fit.last.test_metrics.at(1).name, "top 2");
  EXPECT_EQ(own.fit.last.test_metrics.at(1).value, 1);
  EXPECT_EQ(own.parameters, 6);
  // Half the loss and twice the step are the plain thing.
  const RunResult plain = trained(folder, "plain", R"(layers = ["dense 2"])",
                                  R"(optimizer = { name = "sgd", lr = 0.05 })");
  EXPECT_NEAR(2 * own.fit.last.loss, plain.fit.last.loss, 1e-5);
  const RunResult scaled = trained(folder, "scaled", R"(layers = ["twice 0", "dense 2"])",
                                   R"(optimizer = { name = "descent" })");
  EXPECT_NEAR(scaled.fit.last.loss, 0.7, 0.3);
  const std::string metrics = read_file((folder / "own") / "metrics.jsonl");
  EXPECT_NE(metrics.find("train/top 2"), std::string::npos);
  EXPECT_NE(metrics.find("test/top 2"), std::string::npos);
  const std::string summary = read_file((folder / "own") / "summary.json");
  EXPECT_NE(summary.find("\"test_metrics\""), std::string::npos) << summary;
}

// Two inputs, each a half of the answer: whether their signs are equal.
TEST(SeveralInputs, AreTrainedFromToml) {
  const TemporaryFolder folder;
  Tensor x({200, 3}), x2({200, 1, 2}), y({200}, DType::i32);
  Random random{11};
  for (size_t i = 0; i < 200; ++i) {
    const float a = random.normal(), b = random.normal();
    for (size_t k = 0; k < 3; ++k) x.values<float>()[3 * i + k] = a;
    for (size_t k = 0; k < 2; ++k) x2.values<float>()[2 * i + k] = b;
    y.values<int32_t>()[i] = (a > 0) == (b > 0);
  }
  write_npz(folder / "pairs.npz", {{"x", x}, {"x2", x2}, {"y", y}});
  write_file_atomically(folder / "pairs.toml", fmt::format(R"([data]
set = "npz"
path = "{}"
[model]
layers = ["dense 16", "tanh", "as left", "from x2", "flatten", "dense 16", "tanh",
          "multiply left", "output product", "dense 2"]
[train]
batch_size = 20
epochs = 30
optimizer = {{ name = "adam", lr = 0.02 }}
[cluster]
threads = 1
lanes = 2
)",
                                                           (folder / "pairs.npz").string()));
  artel::Run run(folder / "pairs.toml", {.out = (folder / "run").string(), .quiet = true});
  EXPECT_GT(run.train().fit.last.test_accuracy, 0.85);
  // The folder knows the inputs, too.
  artel::Run saved = artel::Run::open(folder / "run");
  EXPECT_EQ(saved.evaluate().accuracy, run.evaluate().accuracy);
  Predictor predictor = saved.predictor();
  EXPECT_EQ(predictor(Tensor({4, 5})).shape(), (Shape{4, 2}));
  EXPECT_EQ(predictor(Tensor({4, 5}), "product").shape(), (Shape{4, 16}));
}

std::string error_of_training(const TemporaryFolder& folder, const std::string& model,
                              const std::string& train) {
  return artel::error_of([&] { trained(folder, "wrong", model, train); });
}

TEST(Extensions, AreAmongTheNamesThatMistakesGet) {
  register_all();
  const TemporaryFolder folder;
  EXPECT_NE(error_of_training(folder, R"(layers = ["twise 2"])", "").find("did you mean 'twice'?"),
            std::string::npos);
  EXPECT_NE(error_of_training(folder, R"(name = "one_layr")", "").find("did you mean 'one_layer'?"),
            std::string::npos);
  EXPECT_NE(error_of_training(folder, R"(name = "one_layer")", R"(loss = "halvd")")
                .find("did you mean 'halved'?"),
            std::string::npos);
  EXPECT_NE(error_of_training(folder, R"(name = "one_layer")",
                              R"(optimizer = { name = "descent", factr = 1 })")
                .find("did you mean 'factor'?"),
            std::string::npos);
  EXPECT_NE(
      error_of_training(folder, R"(layers = ["twice 2 3"])", "").find("expected: twice [TIMES]"),
      std::string::npos);
}

TEST(Extensions, TakeNamesThatAreFree) {
  register_all();
  EXPECT_THROW(nn::register_layer("dense", "", [](nn::LayerWords&) { return nn::relu(); }), Error);
  EXPECT_THROW(register_loss("mse", mean_squared_error), Error);
  EXPECT_THROW(data::register_dataset("mnist", clouds), Error);
  EXPECT_THROW(
      nn::register_model({.name = "mlp"}, [](const nn::ModelOptions&) { return nn::relu(); }),
      Error);
}

// Registrations with unusable names or functions are refused at once.
TEST(Extensions, AreRefusedIfNobodyCouldUseThem) {
  const auto relu = [](auto&&) { return nn::relu(); };
  const auto refusal = [](const auto& body) -> std::string {
    return artel::error_of([&] { body(); });
  };
  const std::string word = "': expected a name of letters, digits, '_', '-' and '.'";
  EXPECT_EQ(refusal([&] { nn::register_layer("same", "", relu); }),
            "layer 'same': the word is reserved for repeating a layer; try another name");
  EXPECT_EQ(refusal([&] { nn::register_layer("two words", "", relu); }), "layer 'two words" + word);
  EXPECT_EQ(refusal([&] { nn::register_layer("a|b", "", relu); }), "layer 'a|b" + word);
  EXPECT_EQ(refusal([&] { nn::register_model({.name = "my net"}, relu); }), "model 'my net" + word);
  EXPECT_EQ(refusal([&] { data::register_dataset("my set", clouds); }), "data set 'my set" + word);
  const std::string nothing = "': got no function, expected one";
  EXPECT_EQ(refusal([] { nn::register_layer("empty", "", {}); }), "layer 'empty" + nothing);
  EXPECT_EQ(refusal([] { nn::register_model({.name = "empty"}, {}); }), "model 'empty" + nothing);
  EXPECT_EQ(refusal([] { data::register_dataset("empty", {}); }), "data set 'empty" + nothing);
  EXPECT_EQ(refusal([] { register_loss("empty", {}); }), "loss 'empty" + nothing);
  EXPECT_EQ(refusal([] { register_metric({.name = "empty"}); }), "metric 'empty" + nothing);
  EXPECT_EQ(refusal([] { register_op({.name = "empty"}); }), "op 'empty" + nothing);
  EXPECT_EQ(refusal([] { register_strategy({.title = "Empty", .names = {"empty"}}); }),
            "strategy 'Empty" + nothing);
}

}  // namespace
}  // namespace artel
