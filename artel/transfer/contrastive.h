// Contrastive learning without labels: two random views of a sample shall be alike, and unlike
// those of others.
//
//   artel::transfer::pretrain(config, cluster, {.method = "simclr"}, "runs/simclr");
//
// The loss is over the global batch of all workers, so it cannot be summed over lanes. Each step
// first computes the outputs of all views, each worker those of a part, and gathers them; then the
// loss and its gradient by each output, which all workers compute alike; then a training step whose
// loss is the product of outputs and these gradients. The outputs are computed twice, and the bits
// are the same on any number of workers. Networks whose outputs differ between training and use
// (batch norm, dropout) are refused.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "artel/cluster/cluster.h"
#include "artel/run/config.h"
#include "artel/tensor/tensor.h"

namespace artel::transfer {

struct ContrastiveLoss {
  double loss = 0;  // mean over the rows
  Tensor gradient;  // of that by the outputs
};

// NT-Xent (Chen et al., 2020): outputs [2 n, width], of which row i and row n + i are views of one
// sample; all other rows are its negatives. Rows are scaled to length 1 first.
ContrastiveLoss nt_xent(const Tensor& outputs, double temperature);
// InfoNCE with a queue (He et al., 2020): row i of `outputs` belongs to row i of `keys`; the rows
// of `queue` are its negatives. Keys and queue have rows of length 1.
ContrastiveLoss momentum_contrast(const Tensor& outputs, const Tensor& keys, const Tensor& queue,
                                  double temperature);
// Rows of length 1.
Tensor unit_rows(const Tensor& rows);

struct PretrainOptions {
  std::string method = "simclr";  // or "moco"
  double temperature = 0.2;
  int64_t queue = 4096;    // moco: keys that are kept, of earlier batches
  double momentum = 0.99;  // moco: of the weights that make the keys
  bool quiet = false;
  std::function<void(int64_t step, double loss)> after_step = {};
};

struct PretrainResult {
  int64_t steps = 0;
  double loss = 0;  // mean over the last epoch
};

// Trains the network of a configuration on its data, whose labels are ignored; `data.augment` makes
// the views and has to be random. The folder becomes that of a run, which is a base. A collective
// call: all workers make it, and worker 0 writes.
PretrainResult pretrain(const RunConfig& config, Cluster& cluster, const PretrainOptions& options,
                        const std::filesystem::path& folder);

}  // namespace artel::transfer
