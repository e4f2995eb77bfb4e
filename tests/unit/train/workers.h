// A small network, data and workers as threads, each with its own group and trainer.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "artel/base/random.h"
#include "artel/nn/layers.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/trainer.h"

namespace artel {

inline Model network() {
  return nn::sequential({nn::conv(4, {3, 3}, {.padding = {1, 1}}), nn::batch_norm(), nn::relu(),
                         nn::max_pool({2, 2}), nn::flatten(), nn::dropout(0.2), nn::dense(8),
                         nn::relu(), nn::dense(3)});
}

inline data::DatasetPtr samples(const Shape& shape = {40, 1, 6, 6}) {
  Tensor x(shape), y({shape[0]}, DType::i32);
  Random random{5};
  for (float& v : x.values<float>()) v = random.normal();
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(3));
  return data::tensor_dataset(x, y);
}

struct Setting {
  std::string strategy = "auto";
  std::string reduction = "auto";
  int lanes = 8;
  int64_t batch = 13;
  std::string compress = "";
  int64_t local_steps = 1;
  double outer_momentum = 0;
  int coordinators = 1;
  std::vector<std::string> freeze = {};
  FitOptions fit = {.epochs = 3, .validation = samples()};
};

inline TrainerOptions trainer_options(const Setting& setting) {
  return {.optimizer = optim::sgd(0.1, {.momentum = 0.9}),
          .seed = 4,
          .threads = 1,
          .lanes = setting.lanes,
          .freeze = setting.freeze,
          .strategy = setting.strategy,
          .strategy_options = {SynchronousOptions{.reduction = setting.reduction,
                                                  .coordinators = setting.coordinators},
                               LocalStepsOptions{.local_steps = setting.local_steps,
                                                 .outer_momentum = setting.outer_momentum},
                               PackingOptions{.compress = setting.compress}}};
}

inline NamedTensors train(Cluster& cluster, const Setting& setting) {
  Trainer trainer(cluster, network(), trainer_options(setting));
  FitOptions fit = setting.fit;
  fit.batch_size = setting.batch;
  trainer.fit(samples(), fit);
  return trainer.weights();
}

// Runs `body(rank, cluster)` on as many threads as workers, with servers behind them, if any, and
// rethrows the first error.
inline void on_workers(int workers, const std::function<void(int, Cluster&)>& body,
                       int servers = 0) {
  static std::atomic<int> runs = 0;
  const std::string name =
      "distributed_test_" + std::to_string(::getpid()) + "_" + std::to_string(runs++);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(workers + servers));
  for (int rank = 0; rank < workers + servers; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Cluster cluster(comm::GroupOptions{
            .rank = rank, .size = workers + servers, .address = name, .servers = servers});
        if (cluster.is_server()) return cluster.serve();
        body(rank, cluster);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

inline void on_workers_and_servers(int workers, int servers,
                                   const std::function<void(int, Cluster&)>& body) {
  on_workers(workers, body, servers);
}

inline std::vector<float> flat(const NamedTensors& weights) {
  std::vector<float> all;
  for (const NamedTensor& w : weights)
    all.insert(all.end(), w.tensor.values<float>().begin(), w.tensor.values<float>().end());
  return all;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

inline std::vector<float> alone(const Setting& setting) {
  Cluster cluster;
  return flat(train(cluster, setting));
}

}  // namespace artel
