#include "artel/optim/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/random.h"
#include "artel/optim/clipping.h"

namespace artel::optim {
namespace {

using Json = nlohmann::json;
using Floats = std::vector<float>;

// One parameter with its state.
struct Trained {
  Trained(const Optimizer& optimizer, Floats initial)
      : values(std::move(initial)), memory(optimizer.slots().size(), Floats(values.size())) {
    state.assign(memory.begin(), memory.end());
  }

  Floats values;
  std::vector<Floats> memory;
  std::vector<std::span<float>> state;
};

Floats noise(size_t n, uint64_t seed) {
  Random random{seed};
  Floats values(n);
  for (float& value : values) value = random.normal();
  return values;
}

// Every rule, 50 steps, against PyTorch (tests/golden/make_optimizers.py).
TEST(Optimizer, AgreesWithPyTorch) {
  const Json golden = Json::parse(read_file(ARTEL_GOLDEN_DIR "/optimizers.json"));
  const auto initial = golden["initial"].get<Floats>();
  const auto split = initial.begin() + golden["matrix"].get<int>();
  ASSERT_EQ(golden["cases"].size(), 21u);
  ThreadPool pool(1);
  for (const Json& golden_case : golden["cases"]) {
    SCOPED_TRACE(golden_case["options"].dump());
    const auto config = optimizer_from_options(golden_case["options"].get<Options>());
    const auto optimizer = make_optimizer(config);
    Trained matrix(*optimizer, {initial.begin(), split}), bias(*optimizer, {split, initial.end()});
    int64_t compared = 0;
    for (int64_t step = 1; step <= 50; ++step) {
      const auto gradient = golden["gradients"][step - 1].get<Floats>();
      const std::span<const float> all = gradient;
      const float scale = clip_scale(std::sqrt(sum_of_squares(pool, all)), config.clip_norm);
      const auto rate = static_cast<float>(config.learning_rate);
      optimizer->update(pool, {"weight", true}, step, rate, scale, matrix.values,
                        all.first(matrix.values.size()), matrix.state);
      optimizer->update(pool, {"bias", false}, step, rate, scale, bias.values,
                        all.last(bias.values.size()), bias.state);
      const auto found = golden_case["parameters"].find(std::to_string(step));
      if (found == golden_case["parameters"].end()) continue;
      Floats values = matrix.values;
      values.insert(values.end(), bias.values.begin(), bias.values.end());
      const auto expected = found->get<Floats>();
      ASSERT_EQ(values.size(), expected.size());
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(values[i], expected[i], 2e-6 * (1 + std::abs(expected[i])))
            << "step " << step << " element " << i;
        ++compared;
      }
    }
    EXPECT_EQ(compared, 4 * 24);
  }
}

class EveryRule : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Optimizer> optimizer() {
    return make_optimizer(optimizer_from_options({{"name", GetParam()}, {"weight_decay", "0.01"}}));
  }
};

TEST_P(EveryRule, GivesTheSameBitsWithAnyNumberOfThreads) {
  const auto rule = optimizer();
  const Floats initial = noise(100003, 1);
  const auto train = [&](int threads) {
    ThreadPool pool(threads);
    Trained trained(*rule, initial);
    for (int64_t step = 1; step <= 3; ++step)
      rule->update(pool, {"weight"}, step, 0.01f, 0.5f, trained.values,
                   noise(initial.size(), 10 + step), trained.state);
    return trained.values;
  };
  const Floats alone = train(1);
  EXPECT_NE(alone, initial);
  EXPECT_EQ(train(2), alone);
  EXPECT_EQ(train(5), alone);
}

// A tail is computed by the same instructions as whole vectors: cutting a bias differently (whose
// update is free of norms) changes no bit.
TEST_P(EveryRule, GivesTheSameBitsInPieces) {
  const auto rule = optimizer();
  ThreadPool pool(1);
  const Floats initial = noise(64, 1), gradient = noise(64, 2);
  Trained whole(*rule, initial);
  rule->update(pool, {"bias", false}, 1, 0.01f, 1, whole.values, gradient, whole.state);
  for (size_t cut = 0; cut <= 64; ++cut) {
    Trained first(*rule, {initial.begin(), initial.begin() + cut});
    Trained second(*rule, {initial.begin() + cut, initial.end()});
    const std::span<const float> all = gradient;
    rule->update(pool, {"bias", false}, 1, 0.01f, 1, first.values, all.first(cut), first.state);
    rule->update(pool, {"bias", false}, 1, 0.01f, 1, second.values, all.subspan(cut), second.state);
    first.values.insert(first.values.end(), second.values.begin(), second.values.end());
    ASSERT_EQ(first.values, whole.values) << "cut at " << cut;
  }
}

TEST_P(EveryRule, KeepsZeroPaddingAndShowsNaN) {
  const auto rule = optimizer();
  ThreadPool pool(1);
  Floats initial = noise(20, 1), gradient = noise(20, 2);
  std::fill(initial.begin() + 15, initial.end(), 0.0f);
  std::fill(gradient.begin() + 15, gradient.end(), 0.0f);
  Trained trained(*rule, initial);
  rule->update(pool, {"weight"}, 1, 0.01f, 1, trained.values, gradient, trained.state);
  for (size_t i = 15; i < 20; ++i) EXPECT_EQ(trained.values[i], 0);
  gradient[3] = std::numeric_limits<float>::quiet_NaN();
  rule->update(pool, {"weight"}, 2, 0.01f, 1, trained.values, gradient, trained.state);
  EXPECT_TRUE(std::isnan(trained.values[3]));
}

INSTANTIATE_TEST_SUITE_P(Rules, EveryRule, testing::ValuesIn(optimizer_names()),
                         [](const auto& each) { return each.param; });

// The documented formula holds down to a gradient of zero, where only its decay remains. Zeros are
// left with the plain rate.
TEST(Optimizer, LarsFollowsItsFormulaAtZeroGradientsAndZeroWeights) {
  const double rate = 0.5, trust = 0.02, decay = 1e-3, epsilon = 1e-9, momentum = 0.9;
  const auto optimizer = make_optimizer(lars(
      rate, {.momentum = momentum, .trust = trust, .epsilon = epsilon, .weight_decay = decay}));
  ThreadPool pool(1);
  for (const float size : {0.0f, 1.0f})
    for (const float slope : {0.0f, 1e-12f, 1e-6f, 1.0f}) {
      if (size == 0 && slope == 0) continue;
      const Floats initial = noise(7, 3), gradient = noise(7, 4);
      Floats start = initial, given = gradient;
      for (float& value : start) value *= size;
      for (float& value : given) value *= slope;
      Trained trained(*optimizer, start);
      std::vector<double> p(start.begin(), start.end()), m(7, 0.0);
      const auto length = [](const auto& values) {
        double squares = 0;
        for (const double value : values) squares += value * value;
        return std::sqrt(squares);
      };
      for (int64_t step = 1; step <= 3; ++step) {
        optimizer->update(pool, {"weight", true}, step, static_cast<float>(rate), 1, trained.values,
                          given, trained.state);
        const double k =
            length(p) == 0 ? 1 : trust * length(p) / (length(given) + decay * length(p) + epsilon);
        for (size_t i = 0; i < p.size(); ++i) {
          m[i] = momentum * m[i] + rate * k * (given[i] + decay * p[i]);
          p[i] -= m[i];
          EXPECT_NEAR(trained.values[i], p[i], 1e-6 * (1e-30 + std::fabs(p[i])))
              << "weights " << size << ", gradient " << slope << ", step " << step;
        }
      }
    }
}

TEST(Optimizer, ClippingByValueKeepsNaN) {
  auto config = sgd(1);
  config.clip_value = 0.5;
  ThreadPool pool(1);
  Floats values(3), gradient = {std::numeric_limits<float>::quiet_NaN(), 4, -4};
  make_optimizer(config)->update(pool, {"weight"}, 1, 1, 1, values, gradient, {});
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_EQ(values[1], -0.5f);
  EXPECT_EQ(values[2], 0.5f);
}

TEST(Optimizer, RefusesWrongLengthsAndSteps) {
  ThreadPool pool(1);
  const auto rule = make_optimizer(adam(0.1));
  Trained trained(*rule, Floats(4));
  const Floats short_gradient(3), gradient(4);
  const auto update = [&](int64_t step, const Floats& given, std::span<std::span<float>> state) {
    rule->update(pool, {"layer.weight"}, step, 0.1f, 1, trained.values, given, state);
  };
  EXPECT_NO_THROW(update(1, gradient, trained.state));
  EXPECT_THROW(update(1, short_gradient, trained.state), Error);
  EXPECT_THROW(update(0, gradient, trained.state), Error);
  EXPECT_THROW(update(1, gradient, {}), Error);
  trained.state[1] = trained.state[1].first(2);
  try {
    update(1, gradient, trained.state);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[optimizer] update of 'layer.weight': state slot 1 has 2 elements, expected 4");
  }
}

TEST(Optimizer, SparesBiasAndNormFromDecay) {
  auto config = sgd(0.1, {.weight_decay = 0.1});
  EXPECT_TRUE(decays(config, {64, 3, 3, 3}));
  EXPECT_FALSE(decays(config, {64}));
  config.decay_bias_and_norm = true;
  EXPECT_TRUE(decays(config, {64}));
}

TEST(Optimizer, RatesAreFactorsForNamesThatBeginSo) {
  auto config = adam(0.5);
  config.rates = "head: 10, head.scale: 0.25,0.: 2";
  EXPECT_EQ(optimizer_from_options(to_options(config)).rates, config.rates);
  const auto rated = make_optimizer(config), plain = make_optimizer(adam(0.5));
  ThreadPool pool(1);
  const auto stepped = [&](const Optimizer& optimizer, const std::string& name, float rate) {
    Floats values = noise(50, 1), first(50), second(50);
    const Floats gradient = noise(50, 2);
    const std::vector<std::span<float>> state = {first, second};
    optimizer.update(pool, {name}, 1, rate, 1, values, gradient, state);
    return values;
  };
  for (const auto& [name, factor] : std::vector<std::pair<std::string, float>>{
           {"head.weight", 10}, {"head.scale", 0.25f}, {"0.bias", 2}, {"1.bias", 1}})
    EXPECT_EQ(stepped(*rated, name, 0.5f), stepped(*plain, name, 0.5f * factor)) << name;
  for (const char* wrong :
       {"head", "head: 0", "head: -1", "head: x", ": 2", "a: 1, a: 2", "a: 1,"}) {
    config.rates = wrong;
    EXPECT_THROW(check(config), Error) << wrong;
  }
}

TEST(Optimizer, AveragesWeightsBesideThoseItTrains) {
  for (const auto& [average, from] : std::vector<std::pair<double, int64_t>>{{0.8, 1}, {1, 4}}) {
    auto config = adam(0.1);
    config.average = average;
    config.average_from = from;
    const auto averaging = make_optimizer(config), plain = make_optimizer(adam(0.1));
    EXPECT_EQ(averaging->slots(), (std::vector<std::string>{"exp_avg", "exp_avg_sq", "average"}));
    ThreadPool pool(1);
    Floats values = noise(30, 1), first(30), second(30), mean(30);
    Floats same = values, third(30), fourth(30);
    const std::vector<std::span<float>> state = {first, second, mean}, other = {third, fourth};
    std::vector<double> expected(30);
    for (int64_t step = 1; step <= 20; ++step) {
      const Floats gradient = noise(30, 100 + static_cast<size_t>(step));
      averaging->update(pool, {"a"}, step, 0.1f, 1, values, gradient, state);
      plain->update(pool, {"a"}, step, 0.1f, 1, same, gradient, other);
      ASSERT_EQ(values, same);
      const auto count = static_cast<double>(std::max<int64_t>(1, step - from + 1));
      const double share = std::max(1 - average, 1 / count);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += share * (values[i] - expected[i]);
    }
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(mean[i], expected[i], 1e-5);
  }
  auto config = sgd(0.1);
  config.average = 1.5;
  EXPECT_THROW(check(config), Error);
}

TEST(Clipping, SumOfSquares) {
  for (const size_t n : {0, 1, 31, 4096, 4097, 50000}) {
    const Floats values = noise(n, n);
    double expected = 0;
    for (const float value : values) expected += static_cast<double>(value) * value;
    ThreadPool one(1), three(3);
    EXPECT_NEAR(sum_of_squares(one, values), expected, 1e-6 * (1 + expected));
    EXPECT_EQ(sum_of_squares(one, values), sum_of_squares(three, values));
  }
}

TEST(Clipping, HoldsSquaresThatNoFloatCan) {
  ThreadPool pool(1);
  Floats values = noise(5000, 1);
  values[4500] = 3e30f;
  EXPECT_NEAR(std::sqrt(sum_of_squares(pool, values)) / 3e30, 1, 1e-6);
  values[7] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isinf(sum_of_squares(pool, values)));
  values[9] = std::nanf("");
  EXPECT_TRUE(std::isnan(sum_of_squares(pool, values)));
}

TEST(Clipping, Scale) {
  EXPECT_EQ(clip_scale(5, 0), 1);
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_NEAR(clip_scale(4, 1), 0.25, 1e-6);
  EXPECT_THROW(clip_scale(std::nan(""), 1), Error);
}

}  // namespace
}  // namespace artel::optim
