// The strategy "ddpg": a sparse linear model, trained by delayed proximal gradient on parameter
// servers (ps/delayed_proximal.h), on libsvm files that may be larger than memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "artel/cluster/cluster.h"
#include "artel/ps/delayed_proximal.h"

namespace artel {

struct SparseTrainingOptions {
  std::filesystem::path train, test;  // `test` may be empty
  std::filesystem::path scratch;      // folder for the samples by blocks of features
  int blocks = 16;
  ps::DelayedProximalOptions solver = {};  // what worker 0 has done before holds for all
};

struct SparseTest {
  double loss = 0;  // mean
  int64_t correct = 0, samples = 0;
};

struct SparseTraining {
  ps::PassReport last;
  int64_t features = 0;
  // At worker 0:
  std::vector<float> weights;  // of the features; the constant is behind them
  SparseTest test;
  ps::Report servers;
};

// A collective call of the workers. Their shares of the samples follow their speeds. `after_pass`
// is called on each worker.
SparseTraining train_sparse(Cluster& cluster, const SparseTrainingOptions& options,
                            const ps::AfterPass& after_pass = {});

}  // namespace artel
