#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/transfer/vector_index.h"

namespace artel::transfer {
namespace {

class HnswIndex final : public VectorIndex {
 public:
  HnswIndex(const Tensor& vectors, const ApproximateOptions& options)
      : width_(vectors.shape()[1]),
        space_(static_cast<size_t>(width_)),
        graph_(&space_, static_cast<size_t>(vectors.shape()[0]), options.links,
               options.considered) {
    const float* const values = vectors.values<float>().data();
    for (int64_t row = 0; row < vectors.shape()[0]; ++row)
      graph_.addPoint(values + row * width_, static_cast<hnswlib::labeltype>(row));
    graph_.setEf(options.visited);
  }

  int64_t size() const override { return static_cast<int64_t>(graph_.cur_element_count); }

  std::vector<Neighbours> nearest(ThreadPool& pool, const Tensor& queries,
                                  int64_t most) const override {
    require(queries.shape().rank() == 2 && queries.shape()[1] == width_, ErrorKind::shape,
            "[vector index] queries: got {}, expected [rows, {}]", to_string(queries.shape()),
            width_);
    std::vector<Neighbours> all(queries.shape()[0]);
    const float* const asked = queries.values<float>().data();
    const int64_t wanted = std::min(most, size());
    parallel_for(pool, queries.shape()[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t query = begin; query < end; ++query) {
        auto heap = graph_.searchKnn(asked + query * width_, static_cast<size_t>(wanted));
        Neighbours& found = all[query];
        for (; !heap.empty(); heap.pop())
          found.push_back({static_cast<int64_t>(heap.top().second), std::sqrt(heap.top().first)});
        std::sort(found.begin(), found.end(), [](const Neighbour& a, const Neighbour& b) {
          return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
        });
      }
    });
    return all;
  }

 private:
  int64_t width_;
  hnswlib::L2Space space_;
  mutable hnswlib::HierarchicalNSW<float> graph_;  // queries are const in all but their type
};

}  // namespace

bool has_approximate_index() { return true; }

std::unique_ptr<VectorIndex> approximate_index(const Tensor& vectors,
                                               const ApproximateOptions& options) {
  require(vectors.shape().rank() == 2 && vectors.dtype() == DType::f32, ErrorKind::shape,
          "[vector index] got {} {}, expected f32 [rows, width]", to_string(vectors.dtype()),
          to_string(vectors.shape()));
  return std::make_unique<HnswIndex>(vectors, options);
}

}  // namespace artel::transfer
