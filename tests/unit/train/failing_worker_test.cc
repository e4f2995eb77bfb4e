// A worker that stops with an error of its own: the others stop, too, and name it.
#include <gtest/gtest.h>

#include <mutex>

#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

constexpr const char* kCause = "the disk of this worker is broken";

// Fails from a certain read on.
class BrokenSamples final : public data::Dataset {
 public:
  BrokenSamples(data::DatasetPtr set, int64_t reads) : set_(std::move(set)), left_(reads) {}
  int64_t size() const override { return set_->size(); }
  const data::SampleLayout& layout() const override { return set_->layout(); }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    require(--left_ >= 0, ErrorKind::io, "{}", kCause);
    set_->read(index, input, target);
  }

 private:
  data::DatasetPtr set_;
  mutable std::atomic<int64_t> left_;
};

struct Share {
  std::string name;
  int workers;
  StrategyOptions options;
};

std::vector<Share> all_shares() {
  return {{"in step", 3, {}},
          {"a tensor group", 2, {TensorOptions{.tensor = 2}}},
          {"two tensor groups", 4, {TensorOptions{.tensor = 2}}},
          {"a pipeline", 2, {PipelineOptions{.pipeline = 2}}},
          {"weights in parts", 3, {ShardingOptions{.sharding = "weights"}}},
          {"a mesh", 4, {PipelineOptions{.pipeline = 2}, TensorOptions{.tensor = 2}}}};
}

// Runs the workers, of which `broken` fails; returns what each says.
std::vector<std::string> errors_of(const Share& share, int broken, int threads,
                                   const std::function<void(Trainer&, bool)>& body) {
  std::vector<std::string> errors(static_cast<size_t>(share.workers));
  on_workers(share.workers, [&](int rank, Cluster& cluster) {
    TrainerOptions options = perceptron_task().options;
    options.lanes = 8;
    options.threads = threads;
    options.strategy_options = share.options;
    options.strategy_options.of<ShardsOptions>().shards = 2;
    Trainer trainer(cluster, perceptron_task().model, options);
    try {
      body(trainer, rank == broken);
    } catch (const std::exception& error) {
      errors[static_cast<size_t>(rank)] = error.what();
    }
  });
  return errors;
}

void expect_named(const std::vector<std::string>& errors, const std::string& where) {
  for (const std::string& error : errors)
    EXPECT_NE(error.find(kCause), std::string::npos) << where << ": " << error;
}

TEST(FailingWorker, IsNamedByAllWhenItsSamplesCannotBeRead) {
  for (const Share& share : all_shares())
    for (const int64_t reads : {int64_t{0}, int64_t{70}})
      for (const int broken : {0, share.workers - 1})
        expect_named(errors_of(share, broken, 2,
                               [&](Trainer& trainer, bool fails) {
                                 const data::DatasetPtr set =
                                     fails ? std::make_shared<BrokenSamples>(samples(), reads)
                                           : samples();
                                 trainer.fit(set, {.batch_size = 16, .epochs = 50});
                               }),
                     share.name);
}

TEST(FailingWorker, IsNamedByAllWhenItStopsBetweenSteps) {
  for (const Share& share : all_shares())
    expect_named(errors_of(share, share.workers - 1, 1,
                           [&](Trainer& trainer, bool fails) {
                             FitOptions fit = {.batch_size = 16, .epochs = 50};
                             fit.after_step.push_back([&](const TrainingState& state) {
                               require(!fails || state.step < 3, ErrorKind::io, "{}", kCause);
                               return true;
                             });
                             trainer.fit(samples(), fit);
                           }),
                 share.name);
}

// One worker alone has too little memory for its part.
TEST(FailingWorker, IsNamedByAllWhenItsPartDoesNotFit) {
  for (const Share& share : all_shares()) {
    std::vector<std::string> errors(static_cast<size_t>(share.workers));
    on_workers(share.workers, [&](int rank, Cluster& cluster) {
      TrainerOptions options = perceptron_task().options;
      options.lanes = 8;
      options.strategy_options = share.options;
      options.strategy_options.of<ShardsOptions>().shards = 2;
      if (rank == share.workers - 1) options.memory_limit = 64;
      Trainer trainer(cluster, perceptron_task().model, options);
      try {
        trainer.fit(samples(), {.batch_size = 16, .epochs = 2});
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
    for (const std::string& error : errors)
      EXPECT_NE(error.find("memory_limit"), std::string::npos) << share.name << ": " << error;
  }
}

}  // namespace
}  // namespace artel
