#include "artel/run/run.h"

#include <gtest/gtest.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/checkpoint/compare.h"
#include "artel/run/folder/run_folder.h"
#include "artel/tensor/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// Two classes that a line divides, as a table and a configuration for it.
class RunTest : public testing::Test {
 protected:
  using Run = artel::Run;  // not that of testing::Test

  RunTest() {
    std::string table = "a,b,kind\n";
    for (int i = 0; i < 80; ++i)
      table +=
          fmt::format("{},{},{}\n", i % 8 - 4 + (i % 2 ? 5 : -5), i % 5, i % 2 ? "up" : "down");
    write_file_atomically(folder_ / "table.csv", table);
    write_file_atomically(file(), fmt::format(R"([data]
set = "csv"
path = "{}"
target = "kind"
[model]
layers = ["dense 8", "relu", "dense 2"]
[train]
batch_size = 8
epochs = 4
optimizer = {{ name = "sgd", lr = 0.1, momentum = 0.9 }}
[cluster]
threads = 1
lanes = 2
)",
                                              (folder_ / "table.csv").string()));
  }

  fs::path file() const { return folder_ / "table.toml"; }
  // Options of a silent run in its own folder.
  RunOptions out(const std::string& name, bool resume = false) const {
    return {.out = (folder_ / name).string(), .resume = resume, .quiet = true};
  }

  TemporaryFolder folder_;
};

bool same_weights(const fs::path& a, const fs::path& b) {
  return !checkpoint::compare_checkpoints(a, b).has_value();
}

TEST_F(RunTest, TrainsAsTheFileSaysAndLeavesItsFolder) {
  Run run(file(), out("run"));
  EXPECT_TRUE(run.folder().empty());
  const RunResult result = run.train();
  EXPECT_EQ(result.rank, 0);
  EXPECT_EQ(result.folder, folder_ / "run");
  EXPECT_EQ(run.folder(), result.folder);
  EXPECT_EQ(result.fit.stopped_by, "epochs");
  EXPECT_EQ(result.fit.last.epoch, 4);
  EXPECT_EQ(result.fit.epochs.size(), 4U);
  EXPECT_EQ(result.parameters, 2 * 8 + 8 + 8 * 2 + 2);
  EXPECT_EQ(result.signal, 0);
  const RunFolder folder(result.folder);
  for (const fs::path& path : {folder.config(), folder.samples(), folder.summary(),
                               folder.choices(), folder.curves(), folder.path() / "metrics.jsonl"})
    EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_EQ(to_toml(read_config(folder.config())), to_toml(run.config()));
}

TEST_F(RunTest, PrintsOnlyIfItIsNotQuiet) {
  const auto printed = [](Run run) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    run.train();
    return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(printed(Run(file(), out("quiet"))), "");
  RunOptions options = out("loud");
  options.quiet = false;
  const std::string text = printed(Run(file(), options));
  EXPECT_NE(text.find("epoch 4/4: loss"), std::string::npos) << text;
  EXPECT_NE(text.find("stopped by"), std::string::npos) << text;
}

TEST_F(RunTest, SetsAsTheCommandLineDoes) {
  Run run(file());
  run.set("train.epochs", 3);
  run.set("train.optimizer.lr", 0.25);
  run.set("train.clip_norm", 0.5F);
  run.set("train.keep_last_batch", true);
  run.set("data.target", "b");
  run.set("model.layers", R"(["flatten", "dense 3"])");
  run.set("cluster.delay", std::string("none"));
  const RunConfig expected =
      read_config(file(), {"train.epochs=3", "train.optimizer.lr=0.25", "train.clip_norm=0.5",
                           "train.keep_last_batch=true", "data.target=b",
                           R"(model.layers=["flatten", "dense 3"])", "cluster.delay=none"});
  EXPECT_EQ(to_toml(run.config()), to_toml(expected));
  EXPECT_EQ(run.config().train.epochs, 3);
  EXPECT_EQ(run.config().model.layers, (std::vector<std::string>{"flatten", "dense 3"}));
}

// Options of another optimizer are not among the defaults of the one before.
TEST_F(RunTest, SetsWhatTheFileLeavesOpen) {
  RunConfig config;
  config.train.optimizer = {{"name", "sgd"}, {"lr", "0.3"}};
  Run run(config);
  run.set("train.optimizer.name", "adam");
  EXPECT_EQ(run.config().train.optimizer.at("name"), "adam");
  EXPECT_EQ(run.config().train.optimizer.at("lr"), "0.3");
}

TEST_F(RunTest, ErrorsNameTheFileAndTheKeyAndChangeNothing) {
  Run run(file());
  EXPECT_EQ(artel::error_of([&] { run.set("train.epoch", 3); }),
            "[--set train.epoch=3] unknown key 'train.epoch'; did you mean 'train.epochs'?");
  EXPECT_EQ(artel::error_of([&] { run.set("train.epochs", "many"); }),
            "[--set train.epochs=many] train.epochs: got \"many\", expected a whole number");
  EXPECT_EQ(artel::error_of([&] { run.set("train.epochs", 2.5); }),
            "[--set train.epochs=2.5] train.epochs: got 2.5, expected a whole number");
  EXPECT_EQ(to_toml(run.config()), to_toml(read_config(file())));
  run.set("train.epochs", 2);
  EXPECT_EQ(run.config().train.epochs, 2);

  const fs::path wrong = folder_ / "wrong.toml";
  write_file_atomically(wrong, "[train]\n\nepochs = \"all\"\n");
  EXPECT_EQ(
      artel::error_of([&] { Run{wrong}; }),
      fmt::format("[{}:3] train.epochs: got \"all\", expected a whole number", wrong.string()));
  EXPECT_NE(artel::error_of([&] { Run{folder_ / "none.toml"}; }).find("none.toml"),
            std::string::npos);
  RunConfig config;
  config.train.batch_size = -3;
  EXPECT_NE(artel::error_of([&] { Run{config}; }).find("train.batch_size: got -3"),
            std::string::npos);
}

TEST_F(RunTest, AConfigurationFromCodeTrainsAsItsFile) {
  Run(file(), out("file")).train();
  RunConfig config = read_config(file());
  Run(config, out("code")).train();
  EXPECT_TRUE(same_weights(folder_ / "file", folder_ / "code"));
  config.train.seed = 1;
  Run(config, out("seed")).train();
  EXPECT_FALSE(same_weights(folder_ / "file", folder_ / "seed"));
}

TEST_F(RunTest, AResumedRunEndsAsOneThatWasNeverStopped) {
  Run(file(), out("whole")).train();
  Run first(file(), out("parts"));
  first.set("train.steps", 10);
  EXPECT_EQ(first.train().fit.last.step, 10);
  EXPECT_NE(artel::error_of([&] { first.train(); }).find("the folder already contains a run"),
            std::string::npos);
  const RunResult result = Run(file(), out("parts", /*resume=*/true)).train();
  EXPECT_EQ(result.fit.last.epoch, 4);
  EXPECT_LT(result.fit.last.samples, 4 * 72);
  EXPECT_TRUE(same_weights(folder_ / "whole", folder_ / "parts"));
}

TEST_F(RunTest, UsesWhatItHasTrained) {
  Run run(file(), out("run"));
  EXPECT_EQ(artel::error_of([&] { run.evaluate(); }),
            fmt::format("[{}] nothing has been trained there; try train() first",
                        (folder_ / "run").string()));
  const RunResult result = run.train();
  const Evaluation evaluation = run.evaluate();
  EXPECT_EQ(evaluation.loss, result.fit.last.test_loss);
  EXPECT_EQ(evaluation.accuracy, result.fit.last.test_accuracy);
  EXPECT_EQ(run.layout().class_names, (std::vector<std::string>{"down", "up"}));

  const Tensor rows = Tensor::from<float>({2, 2}, {-6, 1, 6, 1});
  const Tensor outputs = run.predict(rows);
  ASSERT_EQ(outputs.shape(), (Shape{2, 2}));
  EXPECT_GT(outputs.values<float>()[0], outputs.values<float>()[1]);
  EXPECT_LT(outputs.values<float>()[2], outputs.values<float>()[3]);
  const auto equal = [&](const Tensor& other) {
    return std::equal(outputs.values<float>().begin(), outputs.values<float>().end(),
                      other.values<float>().begin());
  };
  Predictor predictor = run.predictor();
  EXPECT_TRUE(equal(predictor(rows)));
  write_npy(folder_ / "rows.npy", rows);
  EXPECT_TRUE(equal(run.predict(folder_ / "rows.npy")));

  // And later, from the folder.
  Run again = Run::open(folder_ / "run");
  EXPECT_TRUE(equal(again.predict(rows)));
  EXPECT_EQ(again.evaluate().loss, evaluation.loss);
  EXPECT_EQ(again.folder(), folder_ / "run");
  EXPECT_EQ(artel::error_of([&] { Run::open(folder_.path()); }),
            fmt::format("[{}] is not the folder of a run", folder_.path().string()));
}

// In memory and from the folder alike.
TEST_F(RunTest, UsesAveragedWeights) {
  Run run(file(), out("averaged"));
  run.set("train.optimizer.average", 0.9);
  const TrainingState last = run.train().fit.last;
  EXPECT_TRUE(last.averaged);
  EXPECT_EQ(run.evaluate().loss, last.test_loss);
  EXPECT_EQ(Run::open(folder_ / "averaged", {.quiet = true}).evaluate().loss, last.test_loss);
}

TEST_F(RunTest, CallbacksSeeStepsAndStop) {
  RunOptions options = out("run");
  int64_t steps = 0;
  options.after_step = {[&](const TrainingState& state) {
    steps = state.step;
    return state.step < 5;
  }};
  const RunResult result = Run(file(), options).train();
  EXPECT_EQ(steps, 5);
  EXPECT_EQ(result.fit.stopped_by, "callback");
}

// Each worker has the whole network at the end, with the same bits as one worker.
TEST_F(RunTest, WorkersTrainTogether) {
  Run(file(), out("alone")).train();
  std::vector<Evaluation> evaluations(2);
  std::vector<RunResult> results(2);
  std::vector<std::thread> workers;
  for (int rank = 0; rank < 2; ++rank)
    workers.emplace_back([&, rank] {
      Cluster cluster(
          comm::GroupOptions{.transport = "shm",
                             .rank = rank,
                             .size = 2,
                             .address = "run-test-" + folder_.path().filename().string(),
                             .token = "together"});
      Run run(file(), out("together"));
      results[rank] = run.train(cluster);
      evaluations[rank] = run.evaluate();
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_TRUE(same_weights(folder_ / "alone", folder_ / "together"));
  EXPECT_EQ(results[0].folder, folder_ / "together");
  EXPECT_EQ(results[1].rank, 1);
  EXPECT_TRUE(results[1].folder.empty());
  EXPECT_EQ(evaluations[0].loss, evaluations[1].loss);
  EXPECT_EQ(evaluations[0].loss, results[0].fit.last.test_loss);
}

TEST_F(RunTest, SaysThatNobodyHasStartedItsWorkers) {
  Run run(file(), out("run"));
  EXPECT_FALSE(run.lacks_workers());
  run.set("cluster.workers", 3);
  EXPECT_TRUE(run.lacks_workers());
  EXPECT_EQ(artel::error_of([&] { run.train(); }),
            fmt::format("[{}] cluster: got 3 workers and 0 servers, but they were not started; "
                        "try mpirun, or cluster.workers = 1 with a strategy that needs no servers",
                        file().string()));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

}  // namespace
}  // namespace artel
