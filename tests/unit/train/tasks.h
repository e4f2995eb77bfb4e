// Small networks with their data and options, to be trained by several workers and by one.
#pragma once

#include <gtest/gtest.h>

#include "artel/nn/zoo/gpt2.h"
#include "tests/unit/train/workers.h"

namespace artel {

struct TrainingTask {
  Model model;
  data::DatasetPtr set;
  TrainerOptions options;
  FitOptions fit;
};

inline Model perceptron() {
  return nn::sequential({nn::flatten(), nn::dense(16), nn::relu(), nn::dense(12), nn::relu(),
                         nn::dense(8), nn::relu(), nn::dense(3)});
}

// Skip connections, one of which spans several cuts; batch norm and dropout.
inline Model convolutional() {
  const auto block = [] {
    return nn::residual(
        nn::sequential({nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                        nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm()}));
  };
  return nn::sequential({nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                         nn::residual(nn::sequential({block(), nn::dropout(0.2), block()})),
                         nn::max_pool({2, 2}), nn::flatten(), nn::dropout(0.2), nn::dense(3)});
}

inline data::DatasetPtr tokens(uint64_t vocabulary = 11) {
  Tensor x({24, 6}, DType::i32), y({24, 6}, DType::i32);
  Random random{5};
  for (int32_t& v : x.values<int32_t>()) v = static_cast<int32_t>(random.below(vocabulary));
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(vocabulary));
  return data::tensor_dataset(x, y);
}

inline TrainingTask small_task(const Model& model) {
  return {.model = model,
          .set = samples(),
          .options = {.optimizer = optim::sgd(0.1, {.momentum = 0.9}),
                      .seed = 4,
                      .threads = 1,
                      .lanes = 8},
          .fit = {.batch_size = 16, .epochs = 2, .validation = samples()}};
}

// The table of tokens is also the last layer: its two gradients come from different stages.
inline TrainingTask text_task() {
  TrainingTask task = small_task(nn::gpt2(
      {.vocabulary = 11, .positions = 6, .width = 8, .depth = 3, .heads = 2, .dropout = 0.1}));
  task.set = task.fit.validation = tokens();
  task.options.optimizer = optim::adam(0.01);
  task.options.optimizer.clip_norm = 0.5;
  return task;
}

// The same with a table that is larger than the rows that a lane looks up, which are therefore sent
// to where the last layer is.
inline TrainingTask large_table_task() {
  TrainingTask task = text_task();
  task.model = nn::gpt2(
      {.vocabulary = 61, .positions = 6, .width = 8, .depth = 3, .heads = 2, .dropout = 0.1});
  return task;
}

// Convolutions in lanes of two and three samples: under some limits of memory, the larger ones have
// to recompute what the smaller ones could keep.
inline TrainingTask unequal_lanes_task() {
  std::vector<nn::Layer> layers;
  for (int i = 0; i < 3; ++i) {
    layers.push_back(nn::conv(16, {3, 3}, {.padding = {1, 1}}));
    layers.push_back(nn::activation("silu"));
  }
  for (const nn::Layer& layer : {nn::adaptive_average_pool(2, 2), nn::flatten(), nn::dense(3)})
    layers.push_back(layer);
  TrainingTask task = small_task(nn::sequential(layers));
  task.set = task.fit.validation = samples({10, 3, 12, 12});
  task.options.lanes = 2;
  task.fit.batch_size = 5;
  task.fit.epochs = 1;
  return task;
}

// Networks that are wide enough to be cut into four shards: with dropout and clipped gradients,
inline TrainingTask perceptron_task() {
  TrainingTask task = small_task(
      nn::sequential({nn::flatten(), nn::dense(96), nn::relu(), nn::dropout(0.2), nn::dense(70),
                      nn::relu(), nn::dense(64), nn::relu(), nn::dense(3)}));
  task.options.lanes = 4;
  task.options.optimizer = optim::adam(0.003);
  task.options.optimizer.clip_norm = 0.2;
  return task;
}

// with skips and batch norm,
inline TrainingTask convolutional_task() {
  const auto conv = [](int64_t channels) {
    return nn::conv(channels, {3, 3}, {.padding = {1, 1}});
  };
  TrainingTask task = small_task(
      nn::sequential({conv(64), nn::batch_norm(), nn::relu(),
                      nn::residual(nn::sequential(
                          {conv(64), nn::batch_norm(), nn::relu(), conv(64), nn::batch_norm()})),
                      nn::max_pool({2, 2}), conv(80), nn::batch_norm(), nn::relu(), nn::flatten(),
                      nn::dropout(0.2), nn::dense(64), nn::relu(), nn::dense(3)}));
  task.options.lanes = 2;
  task.fit.epochs = 1;
  return task;
}

// and with a tied table of 601 tokens, which is not cut evenly.
inline TrainingTask gpt_task() {
  TrainingTask task = text_task();
  task.model = nn::gpt2(
      {.vocabulary = 601, .positions = 6, .width = 64, .depth = 2, .heads = 4, .dropout = 0.1});
  task.options.lanes = 2;
  return task;
}

inline checkpoint::Checkpoint train_task(Cluster& cluster, const TrainingTask& task) {
  Trainer trainer(cluster, task.model, task.options);
  trainer.fit(task.set, task.fit);
  return trainer.checkpoint();
}

// Two workers have the weights of one under every limit of memory that they can keep. `divided`
// says how they share the work.
inline void expect_same_bits_under_limits(const TrainingTask& task,
                                          const StrategyOptions& divided) {
  Cluster one;
  const std::vector<float> expected = flat(train_task(one, task).weights);
  int fitting = 0;
  for (size_t limit = 600 << 10; limit > 0; limit -= 16 << 10) {
    TrainingTask limited = task;
    limited.options.memory_limit = limit;
    limited.options.strategy_options = divided;
    try {
      on_workers(2, [&](int, Cluster& cluster) {
        EXPECT_TRUE(same_bits(expected, flat(train_task(cluster, limited).weights))) << limit;
      });
      ++fitting;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::memory) << error.what();
      break;
    }
  }
  EXPECT_GT(fitting, 3);
}

}  // namespace artel
