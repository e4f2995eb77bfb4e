// Nearest-neighbour search by Euclidean distance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/tensor/tensor.h"

namespace artel::transfer {

struct Neighbour {
  int64_t row = 0;
  float distance = 0;
  bool operator==(const Neighbour&) const = default;
};
// Ordered by distance, then by row.
using Neighbours = std::vector<Neighbour>;

class VectorIndex {
 public:
  virtual ~VectorIndex() = default;
  virtual int64_t size() const = 0;
  // The `most` nearest vectors of each row of queries [rows, width], or all if the index has fewer.
  // Results do not depend on the number of threads.
  virtual std::vector<Neighbours> nearest(ThreadPool& pool, const Tensor& queries,
                                          int64_t most) const = 0;
};

// Compares every vector with every query. Exact; costs queries * vectors * width. Shares the memory
// of `vectors`, f32 [rows, width].
std::unique_ptr<VectorIndex> exact_index(const Tensor& vectors);

// A hierarchical navigable small-world graph (Malkov and Yashunin, 2016; hnswlib). A query visits a
// few hundred vectors and misses few of the nearest. Building costs about rows * log(rows) * 200 *
// width. Rows are added in order, so equal vectors give an equal index. In a build without hnswlib,
// this is the exact index.
struct ApproximateOptions {
  int links = 16;        // per vector in the graph
  int considered = 200;  // candidates per insertion
  int visited = 200;     // candidates per query; more are slower and miss fewer neighbours
};
std::unique_ptr<VectorIndex> approximate_index(const Tensor& vectors,
                                               const ApproximateOptions& options = {});
bool has_approximate_index();

// Limit above which `make_index` returns an approximate index.
inline constexpr int64_t kMostExactVectors = 100'000;
std::unique_ptr<VectorIndex> make_index(const Tensor& vectors);

// The share of true nearest neighbours that an index finds.
double recall(ThreadPool& pool, const VectorIndex& index, const VectorIndex& exact,
              const Tensor& queries, int64_t most);

}  // namespace artel::transfer
