// Finds the vectors nearest to others, by Euclidean distance.
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
// The nearest first; equally near ones by their rows.
using Neighbours = std::vector<Neighbour>;

class VectorIndex {
 public:
  virtual ~VectorIndex() = default;
  virtual int64_t size() const = 0;
  // For each row of queries [rows, width]: its `most` nearest vectors, fewer if there are not so
  // many. Results do not depend on the number of threads.
  virtual std::vector<Neighbours> nearest(ThreadPool& pool, const Tensor& queries,
                                          int64_t most) const = 0;
};

// Compares every vector with every query: exact; cost queries * vectors * width. `vectors`, f32
// [rows, width], are shared.
std::unique_ptr<VectorIndex> exact_index(const Tensor& vectors);

// A graph of small worlds (Malkov and Yashunin, 2016, by hnswlib): a query visits a few hundred
// vectors and misses few of the nearest. Building it costs about rows * log(rows) * 200 * width.
// Rows are added one by one in their order, so that equal vectors give an equal index. Where it was
// not built in, this is the exact index.
struct ApproximateOptions {
  int links = 16;        // of each vector in the graph
  int considered = 200;  // candidates while building
  int visited = 200;     // candidates of a query; more are slower and miss fewer
};
std::unique_ptr<VectorIndex> approximate_index(const Tensor& vectors,
                                               const ApproximateOptions& options = {});
bool has_approximate_index();

// Above this many vectors the approximate one is used.
inline constexpr int64_t kMostExactVectors = 100'000;
std::unique_ptr<VectorIndex> make_index(const Tensor& vectors);

// The share of the true nearest ones that an index finds, over some queries.
double recall(ThreadPool& pool, const VectorIndex& index, const VectorIndex& exact,
              const Tensor& queries, int64_t most);

}  // namespace artel::transfer
