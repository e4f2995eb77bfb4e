// artel's optimizers against the same rules in double.
#include "tests/reference/optimizers.h"
#include "artel/base/json_values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "artel/optim/clipping.h"
#include "artel/optim/optimizer.h"

namespace artel::reference {
namespace {

using Named = std::map<std::string, Array>;

Named draw(Random& random, float size) {
  Named arrays = {
      {"weight", zeros({7, 5})}, {"kernel", zeros({3, 2, 3, 3})}, {"bias", zeros({19})}};
  for (auto& [name, array] : arrays)
    for (double& x : array.data) x = size * random.normal();
  return arrays;
}

// artel's own update of the same parameters, in float.
class Trained {
 public:
  Trained(const optim::OptimizerConfig& config, const Named& parameters)
      : config_(config), rule_(optim::make_optimizer(config)) {
    for (const auto& [name, value] : parameters)
      parameters_[name] = {to_tensor(value), std::vector<Tensor>(rule_->slots().size(), Tensor())};
    for (auto& [name, parameter] : parameters_)
      for (Tensor& slot : parameter.slots) slot = Tensor(parameter.value.shape());
  }

  void update(const Named& gradients, int64_t step, double rate) {
    double squares = 0;
    for (const auto& [name, gradient] : gradients)
      squares += optim::sum_of_squares(pool_, to_tensor(gradient).values<float>());
    const float scale = optim::clip_scale(std::sqrt(squares), config_.clip_norm);
    for (auto& [name, parameter] : parameters_) {
      std::vector<std::span<float>> state;
      for (Tensor& slot : parameter.slots) state.push_back(slot.values<float>());
      const Tensor gradient = to_tensor(gradients.at(name));
      rule_->update(pool_, {name, optim::decays(config_, gradient.shape())}, step,
                    static_cast<float>(rate), scale, parameter.value.values<float>(),
                    gradient.values<float>(), state);
    }
  }

  Array get(const std::string& name) const { return from_tensor(parameters_.at(name).value); }

 private:
  struct Parameter {
    Tensor value;
    std::vector<Tensor> slots;
  };

  optim::OptimizerConfig config_;
  std::unique_ptr<optim::Optimizer> rule_;
  std::map<std::string, Parameter> parameters_;
  ThreadPool pool_{1};
};

// Any settings of any rule.
optim::OptimizerConfig draw_config(Random& random) {
  const std::vector<std::string> names = optim::optimizer_names();
  optim::OptimizerConfig config =
      optim::optimizer_from_options({{"name", names[random.below(names.size())]}});
  struct Draw {
    Random& random;
    void operator()(std::string_view key, double& value) const {
      if (random.below(2)) return;  // the default
      if (key == "momentum" || key == "dampening") value = random.uniform(0, 0.95f);
      if (key == "weight_decay") value = random.uniform(0, 0.1f);
      if (key == "beta1" || key == "beta2" || key == "smoothing")
        value = random.uniform(0.5f, 0.99f);
      if (key == "trust") value = random.uniform(0.001f, 0.1f);
      if (key == "epsilon") value = random.uniform(1e-8f, 1e-3f);
      if (key == "clip_value") value = random.uniform(0.1f, 1);
      if (key == "clip_norm") value = random.uniform(0.1f, 10);
    }
    void operator()(std::string_view key, bool& value) const {
      // Tables of rows, which are not drawn here, have tests of their own (touched_rows_test.cc).
      if (key != "nesterov" && key != "lazy_rows") value = random.below(2) == 1;
    }
    void operator()(std::string_view, std::string&) const {}  // rates, which change nothing else
    void operator()(std::string_view, int64_t&) const {}      // of averages, which move no weight
  };
  config.visit(Draw{random});
  if (auto* sgd = std::get_if<optim::Sgd>(&config.rule))
    sgd->nesterov = sgd->momentum > 0 && sgd->dampening == 0 && random.below(2) == 1;
  optim::check(config);
  return config;
}

TEST(ReferenceOptimizer, AgreesWithArtel) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random{seed};
    const optim::OptimizerConfig config = draw_config(random);
    std::string options = "seed " + std::to_string(seed) + ":";
    for (const auto& [key, value] : optim::to_options(config)) options += " " + key + "=" + value;
    SCOPED_TRACE(options);
    Named parameters = draw(random, 0.5f);
    Optimizer reference(config);
    Trained trained(config, parameters);
    for (int64_t step = 1; step <= 20; ++step) {
      const Named gradients = draw(random, 1);
      const double rate = random.uniform(1e-3f, 0.05f);
      reference.update(parameters, gradients, step, rate);
      trained.update(gradients, step, rate);
      for (const auto& [name, expected] : parameters) {
        const Array got = trained.get(name);
        for (size_t i = 0; i < got.data.size(); ++i)
          ASSERT_NEAR(got.data[i], expected.data[i], 1e-5 * (1 + std::abs(expected.data[i])))
              << name << "[" << i << "] after step " << step;
      }
    }
  }
}

// The values recorded from PyTorch (and, for LARS and LAMB, from their papers' algorithms).
TEST(ReferenceOptimizer, AgreesWithPyTorch) {
  using Json = nlohmann::json;
  const Json golden = Json::parse(read_file(ARTEL_GOLDEN_DIR "/optimizers.json"));
  const auto matrix = golden["matrix"].get<size_t>();
  const auto split = [&](const Json& values) -> Named {
    const auto all = values.get<std::vector<double>>();
    const auto middle = all.begin() + static_cast<int64_t>(matrix);
    return {{"weight", {{1, static_cast<int64_t>(matrix)}, {all.begin(), middle}}},
            {"bias", {{static_cast<int64_t>(all.size() - matrix)}, {middle, all.end()}}}};
  };
  for (const Json& golden_case : golden["cases"]) {
    SCOPED_TRACE(golden_case["options"].dump());
    const auto config = optim::optimizer_from_options(golden_case["options"].get<optim::Options>());
    Optimizer reference(config);
    Named parameters = split(golden["initial"]);
    for (int64_t step = 1; step <= 50; ++step) {
      reference.update(parameters, split(golden["gradients"][step - 1]), step,
                       config.learning_rate);
      const auto found = golden_case["parameters"].find(std::to_string(step));
      if (found == golden_case["parameters"].end()) continue;
      for (const auto& [name, expected] : split(*found))
        for (size_t i = 0; i < expected.data.size(); ++i)
          EXPECT_NEAR(parameters.at(name).data[i], expected.data[i],
                      5e-6 * (1 + std::abs(expected.data[i])))
              << name << "[" << i << "] after step " << step;
    }
  }
}

}  // namespace
}  // namespace artel::reference
