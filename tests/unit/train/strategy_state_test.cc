// States of strategies: in checkpoints, in transfer between workers, and in files of earlier
// versions.
#include <gtest/gtest.h>

#include "artel/base/json_values.h"
#include "artel/train/loop/kept_states.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// A strategy as a user may write it, with a state: each step also uses half of the gradients that
// the one before used.
class Echo : public Strategy {
 public:
  using Strategy::Strategy;

  Outcome step(const data::Batch& batch, const StepOptions& options) override {
    const Memory sums = compute_sums(batch, options, {0, fit_.lanes});
    if (fit_.group())
      for (const Bucket& bucket : fit_.stepper->buckets(batch.total))
        fit_.group()->all_reduce(sums.part(bucket.offset, bucket.bytes).host(),
                                 comm::ElementType::f32);
    size_t at = 0;
    for (const SummedRegion::Part& part : fit_.stepper->region().parts())
      for (float& value : SummedRegion::values(sums, part)) {
        if (last_.size() == at) last_.push_back(0);
        last_[at] = value += part.is_state ? 0 : last_[at] / 2;
        ++at;
      }
    update(options, batch.total, 1, fit_.lanes, [&](int) { return sums; });
    return outcome_together(fit_.stepper->read_statistics(sums.floats(), options.number), batch);
  }

  StrategyState state() const override {
    return {.values = {{"steps", std::to_string(fit_.step)}},
            .tensors = {{"last", Tensor::from({static_cast<int64_t>(last_.size())}, last_)}}};
  }

  void restore(const StrategyState& kept) override {
    for (const auto& [name, tensor] : kept.tensors)
      if (name == "last")
        last_.assign(tensor.values<float>().begin(), tensor.values<float>().end());
    const auto steps = kept.values.find("steps");
    EXPECT_TRUE(steps == kept.values.end() || steps->second == std::to_string(fit_.step));
  }

 private:
  std::vector<float> last_;
};

// The same, but it begins anew each time.
class Forgetful final : public Echo {
 public:
  using Echo::Echo;
  void restore(const StrategyState&) override {}
};

void register_echoes() {
  static const bool once = [] {
    register_strategy({.title = "Echo",
                       .help = "Half of the last gradients counts again.",
                       .names = {"echo"},
                       .make = [](const FitView& fit) { return std::make_unique<Echo>(fit); }});
    register_strategy(
        {.title = "Forgetful echo",
         .help = "The same without memory.",
         .names = {"forgetful-echo"},
         .make = [](const FitView& fit) { return std::make_unique<Forgetful>(fit); }});
    return true;
  }();
  (void)once;
}

// Two workers, in one run for each of the ends, which continue from each other's checkpoints.
std::vector<float> in_parts(const std::string& strategy, const std::vector<int64_t>& ends) {
  register_echoes();
  const TemporaryFolder folder;
  std::vector<float> weights;
  for (const int64_t end : ends)
    on_workers(2, [&](int rank, Cluster& cluster) {
      Trainer trainer(cluster, network(), trainer_options({.strategy = strategy}));
      trainer.fit(samples(), {.batch_size = 13,
                              .epochs = 9,
                              .steps = end,
                              .checkpoints = folder.path(),
                              .resume = true});
      if (rank == 0) weights = flat(trainer.weights());
    });
  return weights;
}

TEST(StrategyState, OfAUsersStrategySurvivesCheckpoints) {
  const std::vector<float> whole = in_parts("echo", {8});
  EXPECT_TRUE(same_bits(in_parts("echo", {2, 5, 8}), whole));
  EXPECT_FALSE(same_bits(in_parts("forgetful-echo", {2, 5, 8}), whole));
}

TEST(StrategyState, OfAUsersStrategyGoesFromFitToFit) {
  register_echoes();
  const auto weights = [](std::vector<int64_t> ends) {
    Cluster cluster;
    Trainer trainer(cluster, network(), trainer_options({.strategy = "echo"}));
    for (const int64_t end : ends)
      trainer.fit(samples(), {.batch_size = 13, .epochs = 9, .steps = end});
    return flat(trainer.weights());
  };
  EXPECT_TRUE(same_bits(weights({3, 6}), weights({6})));
}

// A run that continues with another strategy for a while still has the state of the first.
TEST(StrategyState, OutlivesAnotherStrategy) {
  Cluster cluster;
  register_echoes();
  const auto names = [](const checkpoint::Checkpoint& saved) {
    std::vector<std::string> all;
    for (const NamedTensor& tensor : saved.optimizer)
      if (tensor.name.starts_with("strategy ")) all.push_back(tensor.name);
    return all;
  };
  Trainer echo(cluster, network(), trainer_options({.strategy = "echo"}));
  echo.fit(samples(), {.batch_size = 13, .steps = 1});
  EXPECT_EQ(names(echo.checkpoint()), std::vector<std::string>{"strategy echo/last"});
  Trainer other(cluster, network(), trainer_options({}));
  other.build({DType::f32, {1, 6, 6}});
  other.restore(echo.checkpoint());
  other.fit(samples(), {.batch_size = 13, .steps = 2});
  EXPECT_EQ(names(other.checkpoint()), names(echo.checkpoint()));
}

Tensor numbers(std::vector<float> values) {
  return Tensor::from({static_cast<int64_t>(values.size())}, values);
}

// Worker 1 has kept the states of four workers, and there are three now.
TEST(StrategyState, EachWorkerGetsItsPart) {
  on_workers(3, [&](int rank, Cluster& cluster) {
    const NamedTensors kept = {{"all", numbers({1, 2})},
                               {name_of_worker(0, "own"), numbers({10})},
                               {name_of_worker(2, "own"), numbers({12, 13})},
                               {name_of_worker(2, "more"), numbers({14})},
                               {name_of_worker(3, "own"), numbers({16})}};
    const NamedTensors mine = share_tensors(*cluster.group(), rank == 1 ? kept : NamedTensors(), 1);
    using Values = std::map<std::string, std::vector<float>>;
    Values values;
    for (const auto& [name, tensor] : mine)
      values[name].assign(tensor.values<float>().begin(), tensor.values<float>().end());
    const Values expected[] = {
        {{"all", {1, 2}}, {"worker 0/own", {10}}},
        {{"all", {1, 2}},
         {"worker 0/own", {10}},
         {"worker 2/own", {12, 13}},
         {"worker 2/more", {14}},
         {"worker 3/own", {16}}},
        {{"all", {1, 2}}, {"worker 2/own", {12, 13}}, {"worker 2/more", {14}}}};
    EXPECT_EQ(values, expected[rank]) << rank;
    EXPECT_TRUE(share_tensors(*cluster.group(), {}, 0).empty());
  });
}

// The same checkpoint as versions wrote it that knew two strategies with a state.
checkpoint::Checkpoint as_before(checkpoint::Checkpoint saved) {
  nlohmann::json state = nlohmann::json::parse(saved.state);
  const nlohmann::json strategies = state["strategies"];
  state.erase("strategies");
  state["saving"] = {{"local_steps", 1}, {"compress", ""}};
  for (const auto& [owner, values] : strategies.items()) {
    state["own_purpose"] = values.value("purpose", "");
    if (values.contains("local_steps"))
      state["saving"] = {{"local_steps", std::stoi(values["local_steps"].get<std::string>())},
                         {"compress", values["compress"]}};
  }
  saved.state = state.dump();
  for (NamedTensor& tensor : saved.optimizer)
    if (tensor.name.starts_with("strategy "))
      tensor.name = tensor.name.substr(tensor.name.find('/') + 1);
  return saved;
}

TEST(StrategyState, IsReadFromEarlierCheckpoints) {
  const Setting settings[] = {{.compress = "top-k 10%"},
                              {.local_steps = 4, .outer_momentum = 0.5},
                              {.compress = "int8", .local_steps = 4, .outer_momentum = 0.5}};
  for (const Setting& setting : settings) {
    std::vector<float> parts, whole;
    on_workers(2, [&](int rank, Cluster& cluster) {
      const FitOptions rest = {.batch_size = 13, .epochs = 9, .steps = 8};
      Trainer once(cluster, network(), trainer_options(setting));
      once.fit(samples(), rest);
      Trainer first(cluster, network(), trainer_options(setting)),
          second(cluster, network(), trainer_options(setting));
      first.fit(samples(), {.batch_size = 13, .epochs = 9, .steps = 5});
      second.build({DType::f32, {1, 6, 6}});
      const checkpoint::Checkpoint saved = as_before(first.checkpoint());
      if (rank == 0) {
        EXPECT_TRUE(std::any_of(
            saved.optimizer.begin(), saved.optimizer.end(),
            [](const NamedTensor& each) { return each.name.starts_with("worker 1/"); }));
        second.restore(saved);
      }
      second.fit(samples(), rest);
      if (rank > 0) return;
      whole = flat(once.weights());
      parts = flat(second.weights());
    });
    EXPECT_TRUE(same_bits(parts, whole)) << setting.compress << " " << setting.local_steps;
  }
}

}  // namespace
}  // namespace artel
