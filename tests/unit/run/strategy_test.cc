// Strategies of a user's program, and keys that have no effect.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/run/config/setup.h"
#include "artel/run/run.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

struct PlainOptions {
  double boost = 1;

  void visit(KeyVisitor& field) {
    field({.name = "cluster.boost", .help = "With `plain`: a factor of the rate.", .most = 10},
          boost);
  }
};

// A strategy as a user may write it: all-reduce the whole region after the backward pass.
class Plain final : public Strategy {
 public:
  using Strategy::Strategy;

  Outcome step(const data::Batch& batch, const StepOptions& options) override {
    const Memory sums = compute_sums(batch, options, {0, fit_.lanes});
    if (comm::Group* const group = fit_.group())
      for (const Bucket& bucket : fit_.stepper->buckets(batch.total))
        group->all_reduce(sums.part(bucket.offset, bucket.bytes).host(), comm::ElementType::f32);
    const StepStatistics statistics = fit_.stepper->read_statistics(sums.floats(), options.number);
    StepOptions faster = options;
    faster.learning_rate *= static_cast<float>(fit_.options_of<PlainOptions>().boost);
    update(faster, batch.total, statistics.gradient_scale(), fit_.lanes, [&](int) { return sums; });
    return outcome_together(statistics, batch);
  }
};

void register_plain() {
  static const bool once = [] {
    register_strategy({.title = "Plain",
                       .help = "One all-reduce after each backward pass.",
                       .names = {"plain"},
                       .visit_keys = keys_of<PlainOptions>(),
                       .make = [](const FitView& fit) { return std::make_unique<Plain>(fit); }});
    return true;
  }();
  (void)once;
}

class StrategyTest : public testing::Test {
 protected:
  StrategyTest() {
    register_plain();
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 60; ++i)
      table += fmt::format("{},{},{}\n", i % 7 - 3 + (i % 2 ? 4 : -4), i % 5, i % 2 ? "u" : "d");
    write_file_atomically(folder_ / "table.csv", table);
  }

  // The weights of two workers after training with these keys of [cluster].
  NamedTensors train(const std::string& cluster_keys) {
    const std::string name = fmt::format("strategy_test_{}_{}", ::getpid(), runs_++);
    write_file_atomically(folder_ / (name + ".toml"),
                          fmt::format(R"([data]
set = "csv"
path = "{}"
[model]
layers = ["dense 6", "relu", "dense 2"]
[train]
batch_size = 12
epochs = 3
optimizer = "sgd lr=0.05"
[cluster]
threads = 1
lanes = 4
{})",
                                      (folder_ / "table.csv").string(), cluster_keys));
    std::string failure;
    const auto work = [&](int rank) {
      try {
        Cluster cluster(comm::GroupOptions{.rank = rank, .size = 2, .address = name});
        RunOptions options = {.out = (folder_ / name).string(), .quiet = true};
        artel::Run(folder_ / (name + ".toml"), options).train(cluster);
      } catch (const std::exception& error) {
        if (rank == 0) failure = error.what();
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    EXPECT_EQ(failure, "");
    if (!failure.empty()) return {};
    return checkpoint::load_newest(folder_ / name / "checkpoints")->checkpoint.weights;
  }

  // The summary of the last training.
  nlohmann::json summary() const {
    const std::string name = fmt::format("strategy_test_{}_{}", ::getpid(), runs_ - 1);
    return parse_json(read_file(folder_ / name / "summary.json"), "summary");
  }

  TemporaryFolder folder_;
  int runs_ = 0;
};

float largest_difference(const NamedTensors& a, const NamedTensors& b) {
  float largest = a.size() == b.size() ? 0 : 1e9f;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    for (size_t j = 0; j < a[i].tensor.values<float>().size(); ++j)
      largest = std::max(largest,
                         std::abs(a[i].tensor.values<float>()[j] - b[i].tensor.values<float>()[j]));
  return largest;
}

TEST_F(StrategyTest, AStrategyOfAUserTrainsFromText) {
  const NamedTensors ours = train("");
  ASSERT_FALSE(ours.empty());
  EXPECT_LT(largest_difference(ours, train("strategy = \"plain\"\n")), 1e-5f);
  EXPECT_GT(largest_difference(ours, train("strategy = \"plain\"\nboost = 2\n")), 1e-3f);
}

TEST_F(StrategyTest, ItsKeysAreReadWrittenAndDescribed) {
  const RunConfig config = parse_config("[cluster]\nstrategy = \"plain\"\nboost = 3\n", "a.toml");
  EXPECT_EQ(config.cluster.strategy_options.of<PlainOptions>().boost, 3);
  EXPECT_EQ(to_toml(parse_config(to_toml(config), "b.toml")), to_toml(config));
  EXPECT_NE(config_markdown().find("### Plain\n\n`plain`. One all-reduce"), std::string::npos);
  EXPECT_THROW(parse_config("[cluster]\nboost = 11\n", "a.toml"), Error);
  EXPECT_EQ(server_count(config), 0);
}

TEST_F(StrategyTest, NamesAreUniqueWords) {
  for (const char* name : {"ring", "two words", ""}) {
    StrategyKind kind = *strategy_kinds().back();
    kind.title = "Again";
    kind.names = {name};
    EXPECT_THROW(register_strategy(kind), Error) << name;
  }
  StrategyKind kind = *strategy_kinds().back();
  const size_t count = strategy_kinds().size();
  // A program may replace its own, under a new title too.
  register_strategy(kind);
  const std::string title = std::exchange(kind.title, "Another title");
  register_strategy(kind);
  EXPECT_EQ(strategy_kinds().size(), count);
  EXPECT_EQ(find_strategy(kind.names.front()).title, "Another title");
  kind.title = title;
  register_strategy(kind);
  kind.title = strategy_kinds().front()->title;
  EXPECT_THROW(register_strategy(kind), Error) << "the title comes with Artel";
  kind.names = {"other"};
  EXPECT_THROW(register_strategy(kind), Error) << "the title comes with Artel";
}

std::vector<std::string> ignored(const std::string& cluster_keys) {
  const RunConfig config = parse_config("[cluster]\n" + cluster_keys, "a.toml");
  return ignored_keys(config.cluster.strategy_options, {&find_strategy(config.cluster.strategy)},
                      config.cluster.strategy);
}

TEST_F(StrategyTest, KnowsWhichKeysHaveNoEffect) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ignored("reduction = \"fast\"\ncompress = \"fp16\"\npush_every = 1\n"), Names{});
  EXPECT_EQ(ignored("strategy = \"downpour\"\ndelay = 4\npush_every = 2\n"),
            Names{"cluster.delay"});
  EXPECT_EQ(ignored("strategy = \"ring\"\nblocks = 4\ncoordinators = 2\n"),
            (Names{"cluster.coordinators", "cluster.blocks"}));
  EXPECT_EQ(ignored("strategy = \"coordinator\"\ncoordinators = 2\n"), Names{});
  EXPECT_EQ(ignored("strategy = \"ps\"\nboost = 2\ndelay = \"none\"\n"), Names{"cluster.boost"});
}

TEST_F(StrategyTest, SaysWhichKeysHaveNoEffect) {
  testing::internal::CaptureStderr();
  train("strategy = \"plain\"\npush_every = 4\n");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("cluster.push_every has no effect with the strategy \"plain\" on 2 workers"),
            std::string::npos)
      << said;
}

struct OwnOptions {
  int64_t rounds = 1;

  void visit(KeyVisitor& field) {
    field({.name = "compared.rounds", .help = "Rounds of the program."}, rounds);
  }
};

// A program reads its own keys itself, so a difference would go unnoticed.
TEST_F(StrategyTest, TheKeysOfAProgramMustBeEqualOnAllWorkers) {
  register_keys("compared", keys_of<OwnOptions>());
  const auto errors = [&](int second) {
    std::vector<std::string> found(2);
    const std::string name = fmt::format("strategy_test_{}_{}", ::getpid(), runs_++);
    const auto work = [&](int rank) {
      found[rank] = artel::error_of([&] {
        Cluster cluster(comm::GroupOptions{.rank = rank, .size = 2, .address = name});
        RunOptions options = {.out = (folder_ / name).string(),
                              .quiet = true,
                              .overrides = {"data.path=" + (folder_ / "table.csv").string(),
                                            fmt::format("compared.rounds={}", rank ? second : 3)}};
        artel::Run(folder_ / "plain.toml", options).train(cluster);
      });
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    return found;
  };
  write_file_atomically(folder_ / "plain.toml", R"([data]
set = "csv"
[model]
layers = ["dense 2"]
[train]
batch_size = 12
steps = 1
[cluster]
threads = 1
)");
  EXPECT_EQ(errors(3), (std::vector<std::string>{"", ""}));
  for (const std::string& error : errors(4))
    EXPECT_NE(error.find("worker 1 has 'compared.rounds = 4', worker 0 has 'compared.rounds = 3'"),
              std::string::npos)
        << error;
}

// The log and the summary name the exchange that runs. If another key replaces a named algorithm or
// reduction, one warning names both.
TEST_F(StrategyTest, NamesTheExchangeThatRuns) {
  struct Case {
    std::string keys, path;
    std::vector<std::string> replaced = {};
  };
  const std::string ring = "strategy = \"ring\"\n";
  const std::string no_ring = "cluster.strategy = \"ring\" has no effect with ";
  const std::vector<Case> cases = {
      {"", "direct, exact"},
      {ring, "ring, fast"},
      {"reduction = \"fast\"\n", "automatic, fast"},
      {ring + "compress = \"int8\"\n", "int8, lossy", {no_ring + "cluster.compress = \"int8\""}},
      {"compress = \"int8\"\nreduction = \"exact\"\n",
       "int8, lossy",
       {"cluster.reduction = \"exact\" has no effect with cluster.compress = \"int8\""}},
      {ring + "local_steps = 3\nreduction = \"fast\"\n",
       "average every 3 steps, local",
       {no_ring + "cluster.local_steps = 3",
        "cluster.reduction = \"fast\" has no effect with cluster.local_steps = 3"}},
      {ring + "sharding = \"optimizer\"\n",
       "reduce-scatter, exact",
       {no_ring + "cluster.sharding"}},
      {ring + "pipeline = 2\n", "pipeline, exact", {no_ring + "cluster.pipeline = 2"}},
      {ring + "tensor = 2\n", "tensor group, exact", {no_ring + "cluster.tensor = 2"}},
      {"strategy = \"coordinator\"\nreduction = \"fast\"\n",
       "coordinator, exact",
       {"cluster.reduction = \"fast\" has no effect with cluster.strategy = \"coordinator\""}}};
  for (const Case& c : cases) {
    testing::internal::CaptureStderr();
    train(c.keys);
    const std::string said = testing::internal::GetCapturedStderr();
    const auto count = [&](const std::string& text) {
      size_t found = 0;
      for (const std::string& line : split(said, '\n')) found += line.find(text) < line.size();
      return found;
    };
    EXPECT_EQ(count("2 workers, 4 lanes: " + c.path), 1u) << c.keys << said;
    EXPECT_EQ(count("has no effect"), c.replaced.size()) << c.keys << said;
    for (const std::string& line : c.replaced)
      EXPECT_EQ(count(line + "; this run uses " + c.path), 1u) << line << "\n" << said;
    const nlohmann::json path = summary().at("exchange");
    EXPECT_EQ(fmt::format("{}, {}", path.at("algorithm").get<std::string>(),
                          path.at("reduction").get<std::string>()),
              c.path);
    EXPECT_EQ(summary().at("lanes"), 4);
  }
}

// With `allow_lossy`, "auto" may come to use local steps, and with them these keys.
TEST_F(StrategyTest, SaysNothingOfKeysThatMayHaveAnEffectLater) {
  const auto said = [&](const std::string& keys) {
    testing::internal::CaptureStderr();
    train("outer_momentum = 0.5\nouter_lr = 0.7\n" + keys);
    const std::string text = testing::internal::GetCapturedStderr();
    return std::pair{text.find("cluster.outer_momentum has no effect") != std::string::npos,
                     text.find("cluster.outer_lr has no effect") != std::string::npos};
  };
  EXPECT_EQ(said(""), std::pair(true, true));
  EXPECT_EQ(said("allow_lossy = true\n"), std::pair(false, false));
  EXPECT_EQ(said("allow_lossy = true\ncompress = \"fp16\"\n"), std::pair(true, true));
}

}  // namespace
}  // namespace artel
