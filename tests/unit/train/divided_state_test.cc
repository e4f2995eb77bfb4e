// State that lies in parts on several workers is saved as one worker would save it.
#include "artel/train/parts/divided_state.h"

#include <gtest/gtest.h>

#include "artel/base/file.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "tests/support/file_limit.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/tasks.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

struct Mesh {
  int workers = 1;
  int64_t pipeline = 1;
  std::string sharding = "none";
};

std::string name_of(const Mesh& mesh) {
  return fmt::format("{} workers, pipeline {}, sharding {}", mesh.workers, mesh.pipeline,
                     mesh.sharding);
}

TrainingTask on_mesh(TrainingTask task, const Mesh& mesh) {
  task.options.strategy_options = {PipelineOptions{.pipeline = mesh.pipeline},
                                   ShardingOptions{.sharding = mesh.sharding}};
  return task;
}

// Saves every step and gathers nothing else.
TrainingTask saving_task(TrainingTask task, const fs::path& folder) {
  task.fit.epochs = 0;
  task.fit.steps = 3;
  task.fit.validation = nullptr;
  task.fit.checkpoints = folder;
  task.fit.save_every = 1;
  task.fit.keep_last = 0;
  task.fit.gather_network = false;
  return task;
}

TensorType sample_of(const TrainingTask& task) {
  return {task.set->layout().input_type, task.set->layout().input};
}

void train_on(const Mesh& mesh, const TrainingTask& task) {
  const auto fit = [&](Cluster& cluster) {
    Trainer(cluster, task.model, on_mesh(task, mesh).options).fit(task.set, task.fit);
  };
  if (mesh.workers > 1) return on_workers(mesh.workers, [&](int, Cluster& c) { fit(c); });
  Cluster one;
  fit(one);
}

// By file, the content of those with tensors.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".safetensors")
      files[fs::relative(entry.path(), folder).string()] = read_file(entry.path());
  return files;
}

std::vector<TrainingTask> tasks() {
  TrainingTask wide = small_task(nn::sequential(
      {nn::flatten(), nn::dense(400), nn::relu(), nn::dense(120), nn::relu(), nn::dense(3)}));
  wide.options.optimizer = optim::lamb(0.01);
  wide.options.optimizer.clip_norm = 0.3;
  return {wide, small_task(convolutional()), large_table_task()};
}

TEST(DividedStateTransfer, FilesHaveTheBytesOfOneWorkersOnAnyMesh) {
  for (const TrainingTask& task : tasks()) {
    const TemporaryFolder one;
    train_on({}, saving_task(task, one.path()));
    const auto expected = files_in(one.path());
    EXPECT_EQ(expected.size(), 6U);
    for (const Mesh& mesh : {Mesh{2, 1, "optimizer"}, Mesh{3, 1, "gradients"},
                             Mesh{2, 1, "weights"}, Mesh{4, 1, "weights"}, Mesh{2, 2, "none"},
                             Mesh{3, 3, "none"}, Mesh{4, 2, "none"}, Mesh{4, 2, "gradients"}}) {
      const TemporaryFolder folder;
      train_on(mesh, saving_task(task, folder.path()));
      EXPECT_EQ(files_in(folder.path()), expected) << name_of(mesh);
    }
  }
}

// A checkpoint of one mesh continues on any other, whether or not that one reads it in parts.
TEST(DividedStateTransfer, ARunGoesOnOnAnyMesh) {
  for (const TrainingTask& task : tasks()) {
    const TemporaryFolder one, many;
    TrainingTask all = saving_task(task, one.path());
    all.fit.steps = 6;
    train_on({}, all);
    TrainingTask some = saving_task(task, many.path());
    some.fit.resume = true;
    some.fit.steps = 0;
    for (const Mesh& mesh : {Mesh{2, 2}, Mesh{3, 1, "weights"}, Mesh{}, Mesh{4, 2, "optimizer"},
                             Mesh{2, 1, "gradients"}, Mesh{3, 3}}) {
      ++some.fit.steps;
      train_on(mesh, some);
    }
    EXPECT_EQ(files_in(many.path()), files_in(one.path()));
  }
}

// Each worker makes the random numbers of its part, and worker 0 sends what it has loaded.
TEST(DividedStateTransfer, NetworksBeginWithTheSameValues) {
  for (const TrainingTask& task : tasks())
    for (const Mesh& mesh : {Mesh{2, 1, "weights"}, Mesh{2, 2}}) {
      Cluster one;
      Trainer source(one, task.model, task.options);
      source.build(sample_of(task));
      NamedTensors loaded = source.weights();
      for (NamedTensor& each : loaded)
        for (float& value : each.tensor.values<float>()) value *= 0.5F;
      const auto begin = [&](int rank, Trainer& trainer, bool load) {
        trainer.build(sample_of(task));
        if (load && rank == 0)
          trainer.load_weights(loaded, [](const std::string& name) { return name != "2.bias"; });
        FitOptions fit = task.fit;
        fit.epochs = 0;
        fit.steps = 1;
        trainer.fit(task.set, fit);
        return flat(trainer.weights());
      };
      for (const bool load : {false, true}) {
        Trainer alone(one, task.model, task.options);
        const std::vector<float> expected = begin(0, alone, load);
        on_workers(2, [&](int rank, Cluster& cluster) {
          Trainer trainer(cluster, task.model, on_mesh(task, mesh).options);
          EXPECT_TRUE(same_bits(expected, begin(rank, trainer, load))) << name_of(mesh);
        });
      }
    }
}

TEST(DividedStateTransfer, WhatIsLeftInPartsCannotBeUsed) {
  on_workers(2, [](int, Cluster& cluster) {
    const TrainingTask task = on_mesh(small_task(perceptron()), {2, 1, "weights"});
    Trainer trainer(cluster, task.model, task.options);
    FitOptions fit = task.fit;
    fit.gather_network = false;
    trainer.fit(task.set, fit);
    EXPECT_THROW(trainer.weights(), Error);
  });
}

TEST(DividedStateTransfer, LeavesFrozenParametersToWorker0) {
  TrainingTask task = small_task(convolutional());
  task.options.freeze = {"0."};
  const TemporaryFolder one, two, stages;
  train_on({}, saving_task(task, one.path()));
  train_on({2, 1, "weights"}, saving_task(task, two.path()));
  train_on({2, 2}, saving_task(task, stages.path()));
  EXPECT_EQ(files_in(two.path()), files_in(one.path()));
  EXPECT_EQ(files_in(stages.path()), files_in(one.path()));
}

// Worker 0 cannot write any more; the others, which send their parts, continue.
TEST(DividedStateTransfer, AFullDiskIsAWarning) {
  for (const Mesh& mesh : {Mesh{2, 1, "weights"}, Mesh{2, 2}}) {
    const TemporaryFolder folder;
    TrainingTask task = saving_task(tasks()[0], folder.path());
    task.fit.steps = 4;
    std::optional<FileLimit> full;
    testing::internal::CaptureStderr();
    on_workers(2, [&](int rank, Cluster& cluster) {
      FitOptions fit = task.fit;
      if (rank == 0)
        fit.after_step.push_back([&](const TrainingState& state) {
          full.reset();
          if (state.step == 2) full.emplace(100'000);  // amid a tensor
          return true;
        });
      Trainer(cluster, task.model, on_mesh(task, mesh).options).fit(task.set, fit);
    });
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("step 2 was not saved: ["), text.npos) << text;
    std::vector<int64_t> saved;
    for (const fs::path& path : checkpoint::list_checkpoints(folder.path()))
      saved.push_back(checkpoint::load_checkpoint(path).step);
    EXPECT_EQ(saved, (std::vector<int64_t>{1, 3, 4})) << name_of(mesh);
  }
}

TEST(DividedStateTransfer, RefusesWeightsOfOthersThatAreNotFinite) {
  const TemporaryFolder folder;
  TrainingTask task = saving_task(small_task(perceptron()), folder.path());
  task.options.optimizer = optim::sgd(1e38);
  task.fit.steps = 1;
  testing::internal::CaptureStderr();
  try {
    train_on({2, 1, "weights"}, task);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric) << error.what();
  }
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(checkpoint::list_checkpoints(folder.path()).empty());
}

}  // namespace
}  // namespace artel
