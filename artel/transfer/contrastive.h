// Contrastive learning without labels: the outputs of two random views of a sample should be
// similar, and dissimilar to those of other samples.
//
//   artel::transfer::pretrain(config, cluster, {.method = "simclr"}, "runs/simclr");
//
// The loss covers the global batch, so it is not a sum over lanes. Each step has three parts.
// First, each worker computes the outputs of its share of the views, and all outputs are gathered.
// Second, every worker computes the loss and its gradient with respect to each output. Third, a
// training step uses the inner product of outputs and gradients as its loss. Outputs are computed
// twice. The bits are the same on any number of workers. Networks whose outputs differ between
// training and inference (batch norm, dropout) are refused.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "artel/cluster/cluster.h"
#include "artel/run/config/config.h"
#include "artel/tensor/tensor.h"

namespace artel::transfer {

struct ContrastiveLoss {
  double loss = 0;  // mean over the rows
  Tensor gradient;  // with respect to the outputs
};

// NT-Xent (Chen et al., 2020) of outputs [2 n, width]. Rows i and n + i are views of one sample;
// all other rows are its negatives. Normalises the rows first.
ContrastiveLoss nt_xent(const Tensor& outputs, double temperature);
// InfoNCE with a queue (He et al., 2020). Row i of `keys` is the positive of row i of `outputs`;
// the rows of `queue` are its negatives. Rows of `keys` and `queue` must have length 1.
ContrastiveLoss momentum_contrast(const Tensor& outputs, const Tensor& keys, const Tensor& queue,
                                  double temperature);
// Scales each row to length 1.
Tensor unit_rows(const Tensor& rows);

struct PretrainOptions {
  std::string method = "simclr";  // or "moco"
  double temperature = 0.2;
  int64_t queue = 4096;    // moco: number of keys kept from earlier batches
  double momentum = 0.99;  // moco: momentum of the key encoder
  bool quiet = false;
  std::function<void(int64_t step, double loss)> after_step = {};
};

struct PretrainResult {
  int64_t steps = 0;
  double loss = 0;  // mean over the last epoch
};

// Trains the network of a configuration on its data, ignoring labels. `data.augment` makes the
// views and must be random. `folder` becomes a run folder that can be used as a base. Collective:
// all workers call it, and worker 0 writes.
PretrainResult pretrain(const RunConfig& config, Cluster& cluster, const PretrainOptions& options,
                        const std::filesystem::path& folder);

}  // namespace artel::transfer
