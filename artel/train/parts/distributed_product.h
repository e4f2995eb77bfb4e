// A matrix product with weights distributed over several workers by columns, rows, or both.
//
//   artel::DistributedProduct product(cluster, {.in = 1024, .out = 4096, .columns = 4});
//   artel::Tensor own({product.rows().size(), product.columns().size()});
//   product.set_weights(own);
//   const artel::Tensor y = product(images);  // [samples, 1024] times the weights
//
// The weights [in, out] are cut into rows x columns shards, which are divided among the workers. By
// columns, each worker computes some columns of the result, which are gathered. By rows, each
// computes a part of every sum; the parts are added along one tree (comm/collectives/lane_tree.h).
// The bits depend on the number of shards, not on their distribution.
//
// Training uses the same method inside a network: graph/passes/split_layers.h.
#pragma once

#include <map>
#include <memory>

#include "artel/cluster/cluster.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/exec/program.h"
#include "artel/graph/ops/shards.h"

namespace artel {

struct ProductOptions {
  int64_t in = 0, out = 0;    // of the weights
  int rows = 1, columns = 1;  // shards
};

class TensorGroup;

class DistributedProduct {
 public:
  // Collective, like the product. Throws if the shards cannot be divided among the workers.
  DistributedProduct(Cluster& cluster, const ProductOptions& options);
  ~DistributedProduct();

  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  // The range of the weights on this worker.
  Range rows() const { return rows_.range; }
  Range columns() const { return columns_.range; }
  void set_weights(const Tensor& part);

  // Multiplies x [samples, in], which must be the same on all workers. All workers receive the
  // result [samples, out].
  Tensor operator()(const Tensor& x);

 private:
  // One direction of the grid of workers.
  struct Axis {
    ShardPart part;
    Range range;                         // of rows or columns
    std::unique_ptr<TensorGroup> group;  // workers along this axis; null for a single one
  };
  struct Compiled;

  Axis make_axis(comm::Group* all, int64_t extent, int shards, int workers, int place,
                 int other) const;
  Compiled& compiled(int64_t samples);

  ProductOptions options_;
  Axis rows_, columns_;
  KernelChoices choices_;
  ThreadPool pool_;
  Parameters weights_;
  std::map<int64_t, std::unique_ptr<Compiled>> compiled_;  // by samples
};

}  // namespace artel
