// A matrix product whose weights lie on several workers, cut by columns, by rows, or both.
//
//   artel::DistributedProduct product(cluster, {.in = 1024, .out = 4096, .columns = 4});
//   artel::Tensor own({product.rows().size(), product.columns().size()});
//   product.set_weights(own);
//   const artel::Tensor y = product(images);  // [samples, 1024] times the weights
//
// The weights [in, out] are cut into rows x columns shards, which are divided among the workers. By
// columns, each worker computes some columns of the result, and they are gathered; by rows, each
// computes a part of every sum, and these are added along one tree (comm/lane_tree.h). The bits
// depend on the numbers of shards, and not on who has them.
//
// A step of training uses the same in the middle of a network: graph/passes/split_layers.h.
#pragma once

#include <map>
#include <memory>

#include "artel/cluster/cluster.h"
#include "artel/comm/lane_tree.h"
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
  // A collective call, like the product. Throws if the shards cannot be divided among the workers.
  DistributedProduct(Cluster& cluster, const ProductOptions& options);
  ~DistributedProduct();

  struct Range {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  // Which of the weights this worker has.
  Range rows() const { return rows_.range; }
  Range columns() const { return columns_.range; }
  void set_weights(const Tensor& part);

  // x [samples, in], the same on all workers; all get [samples, out].
  Tensor operator()(const Tensor& x);

 private:
  // One direction of the grid of workers.
  struct Axis {
    ShardPart part;
    Range range;                         // of rows or columns
    std::unique_ptr<TensorGroup> group;  // of those who differ in it; none if it is one
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
