#include "artel/optim/config.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "tests/support/error_of.h"

namespace artel::optim {
namespace {

std::string error_of(const Options& options) {
  return artel::error_of([&] { optimizer_from_options(options); });
}

TEST(OptimizerConfig, FromCode) {
  const OptimizerConfig config = sgd(0.1, {.momentum = 0.9});
  EXPECT_EQ(config.name(), "sgd");
  EXPECT_EQ(config.learning_rate, 0.1);
  EXPECT_EQ(std::get<Sgd>(config.rule).momentum, 0.9);
}

TEST(OptimizerConfig, FromOptions) {
  const auto config =
      optimizer_from_options({{"name", "adamw"}, {"lr", " +3e-4"}, {"beta2", "0.98"}});
  EXPECT_EQ(config.learning_rate, 3e-4);
  EXPECT_EQ(std::get<AdamW>(config.rule).beta2, 0.98);
  EXPECT_EQ(std::get<AdamW>(config.rule).weight_decay, 0.01);
  EXPECT_EQ(optimizer_from_options({{"lr", "1"}}).name(), "sgd");
  EXPECT_TRUE(std::get<Sgd>(optimizer_from_options({{"name", "nesterov"}}).rule).nesterov);
}

TEST(OptimizerConfig, SurvivesARoundTrip) {
  for (const std::string& name : optimizer_names()) {
    auto config = optimizer_from_options({{"name", name}});
    config.learning_rate = 0.1 / 3;
    config.clip_norm = 2;
    const Options options = to_options(config);
    EXPECT_EQ(to_options(optimizer_from_options(options)), options) << name;
  }
}

TEST(OptimizerConfig, NamesWhatIsWrong) {
  EXPECT_EQ(error_of({{"name", "admw"}}),
            "[optimizer] name: got 'admw', expected one of sgd, adagrad, rmsprop, adam, "
            "adamw, lars, lamb, momentum, nesterov; did you mean 'adamw'?");
  EXPECT_EQ(error_of({{"name", "adagrad"}, {"epsilom", "1"}}),
            "[optimizer adagrad] unknown option 'epsilom'; did you mean 'epsilon'?; the options "
            "are name, lr, epsilon, weight_decay, clip_value, clip_norm, decay_bias_and_norm, "
            "lazy_rows, rates, average, average_from");
  EXPECT_EQ(error_of({{"name", "lamb"}, {"lazy_rows", "true"}}),
            "[optimizer lamb] lazy_rows: got true with a rule that computes norms of whole "
            "parameters, expected false");
  EXPECT_EQ(error_of({{"name", "adam"}, {"lazy_rows", "true"}, {"average", "0.9"}}),
            "[optimizer adam] lazy_rows: got true with averaged weights, expected false");
  EXPECT_EQ(error_of({{"name", "sgd"}, {"lr", "fast"}}),
            "[optimizer sgd] lr: got 'fast', expected a number");
  EXPECT_EQ(error_of({{"name", "sgd"}, {"momentum", "1"}}),
            "[optimizer sgd] momentum: got 1, expected a number in [0, 1)");
  EXPECT_EQ(error_of({{"name", "adam"}, {"lr", "-1"}}),
            "[optimizer adam] lr: got -1, expected a number that is not negative");
  EXPECT_EQ(error_of({{"name", "sgd"}, {"nesterov", "yes"}}),
            "[optimizer sgd] nesterov: got 'yes', expected true or false");
  EXPECT_NE(error_of({{"name", "sgd"}, {"nesterov", "true"}}), "");
  EXPECT_NE(error_of({{"name", "sgd"}, {"lr", "inf"}}), "");
}

}  // namespace
}  // namespace artel::optim
