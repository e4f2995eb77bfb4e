// Update rules of users.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/optim/optimizer.h"

namespace artel::optim {
namespace {

// Momentum, written by hand.
Custom by_hand() {
  return {.name = "by_hand",
          .update =
              [](const CustomStep& step) {
                const auto beta = static_cast<float>(step.settings.at("beta"));
                for (size_t i = 0; i < step.parameter.size(); ++i) {
                  float& m = step.state[0][i];
                  m = beta * m + step.gradient[i];
                  step.parameter[i] -= step.learning_rate * m;
                }
              },
          .slots = {"momentum_buffer"},
          .settings = {{"beta", 0.5}}};
}

std::vector<float> trained(const OptimizerConfig& config, int threads) {
  constexpr size_t kElements = 40000;  // several parts
  ThreadPool pool(threads);
  const auto optimizer = make_optimizer(config);
  std::vector<float> parameter(kElements), gradient(kElements), memory(kElements);
  Random random{3};
  for (float& p : parameter) p = random.normal();
  for (int step = 1; step <= 3; ++step) {
    for (float& g : gradient) g = random.normal();
    const std::vector<std::span<float>> state = {memory};
    optimizer->update(pool, {"w", true}, step, 0.1f, 0.5f, parameter, gradient, state);
  }
  return parameter;
}

TEST(CustomRule, SeesScaledAndClippedGradients) {
  OptimizerConfig own = custom(0.1, by_hand()), known = sgd(0.1, {.momentum = 0.5});
  own.clip_value = known.clip_value = 0.3;
  const std::vector<float> got = trained(own, 1), expected = trained(known, 1);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << i;
  EXPECT_EQ(got, trained(own, 3));
}

TEST(CustomRule, MaySeeWholeParameters) {
  Custom rule = by_hand();
  rule.whole_parameters = true;
  rule.update = [](const CustomStep& step) { EXPECT_EQ(step.parameter.size(), 40000u); };
  trained(custom(0.1, rule), 3);
  EXPECT_EQ(make_optimizer(custom(0.1, rule))->scope(), Optimizer::Scope::parameter);
  EXPECT_EQ(make_optimizer(custom(0.1, by_hand()))->scope(), Optimizer::Scope::element);
}

TEST(CustomRule, HasOptionsLikeOthers) {
  const Options options = to_options(custom(0.1, by_hand()));
  EXPECT_EQ(options.at("name"), "by_hand");
  EXPECT_EQ(options.at("beta"), "0.5");
  EXPECT_EQ(options.at("lr"), "0.1");
}

TEST(CustomRule, IsChecked) {
  Custom many = by_hand();
  many.slots = {"a", "b", "c", "d"};
  EXPECT_THROW(make_optimizer(custom(0.1, many)), Error);
  EXPECT_THROW(make_optimizer(custom(0.1, {.name = "nothing"})), Error);
  EXPECT_THROW(make_optimizer(custom(-1, by_hand())), Error);
  EXPECT_THROW(register_optimizer(sgd(0.1)), Error);
  Custom spaced = by_hand();
  spaced.name = "by hand";
  EXPECT_THROW(register_optimizer(custom(0.1, spaced)), Error);
  for (const char* key : {"name", "lr", "clip_value", "clip_norm", "decay_bias_and_norm", "rates",
                          "average", "a b"}) {
    Custom rule = by_hand();
    rule.settings[key] = 1;
    EXPECT_THROW(make_optimizer(custom(0.1, rule)), Error) << key;
    EXPECT_THROW(register_optimizer(custom(0.1, rule)), Error) << key;
  }
}

}  // namespace
}  // namespace artel::optim
