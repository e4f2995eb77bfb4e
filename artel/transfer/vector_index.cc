#include "artel/transfer/vector_index.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/base/error.h"
#include "artel/transfer/distances.h"

namespace artel::transfer {
namespace {

void check_vectors(const Tensor& vectors, const char* what) {
  require(vectors.shape().rank() == 2 && vectors.dtype() == DType::f32, ErrorKind::shape,
          "[vector index] {}: got {} {}, expected f32 [rows, width]", what,
          to_string(vectors.dtype()), to_string(vectors.shape()));
}

// Vectors per block, small enough to stay in a core's cache during comparisons.
constexpr int64_t kTileFloats = 32 << 10, kQueries = 64;

bool nearer(const Neighbour& a, const Neighbour& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.row < b.row;
}

class ExactIndex final : public VectorIndex {
 public:
  explicit ExactIndex(const Tensor& vectors) : vectors_(vectors) {}

  int64_t size() const override { return vectors_.shape()[0]; }

  std::vector<Neighbours> nearest(ThreadPool& pool, const Tensor& queries,
                                  int64_t most) const override {
    check_vectors(queries, "queries");
    const int64_t width = vectors_.shape()[1], rows = size();
    require(queries.shape()[1] == width, ErrorKind::shape,
            "[vector index] queries: got {} numbers, expected {}", queries.shape()[1], width);
    const int64_t kept = std::clamp<int64_t>(most, 0, rows);
    std::vector<Neighbours> all(queries.shape()[0]);
    const float* const vectors = vectors_.values<float>().data();
    const float* const asked = queries.values<float>().data();
    const int64_t tile = std::max<int64_t>(1, kTileFloats / std::max<int64_t>(1, width));
    const int64_t groups = (queries.shape()[0] + kQueries - 1) / kQueries;
    parallel_for(pool, groups, 1, [&](int64_t first, int64_t last) {
      std::vector<float> distances(static_cast<size_t>(kQueries * rows));
      Neighbours candidates(rows);
      for (int64_t group = first; group < last; ++group) {
        const int64_t begin = group * kQueries;
        const int64_t count = std::min(kQueries, queries.shape()[0] - begin);
        for (int64_t row = 0; row < rows; row += tile)
          squared_distances({.queries = asked + begin * width,
                             .query_count = count,
                             .vectors = vectors + row * width,
                             .vector_count = std::min(tile, rows - row),
                             .width = width,
                             .distances = distances.data() + row,
                             .stride = rows});
        for (int64_t query = 0; query < count; ++query) {
          for (int64_t row = 0; row < rows; ++row)
            candidates[row] = {row, distances[query * rows + row]};
          std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(),
                            nearer);
          Neighbours& found = all[begin + query];
          found.assign(candidates.begin(), candidates.begin() + kept);
          for (Neighbour& each : found) each.distance = std::sqrt(each.distance);
        }
      }
    });
    return all;
  }

 private:
  Tensor vectors_;
};

}  // namespace

std::unique_ptr<VectorIndex> exact_index(const Tensor& vectors) {
  check_vectors(vectors, "vectors");
  return std::make_unique<ExactIndex>(vectors);
}

std::unique_ptr<VectorIndex> make_index(const Tensor& vectors) {
  return vectors.shape()[0] > kMostExactVectors ? approximate_index(vectors) : exact_index(vectors);
}

double recall(ThreadPool& pool, const VectorIndex& index, const VectorIndex& exact,
              const Tensor& queries, int64_t most) {
  const std::vector<Neighbours> found = index.nearest(pool, queries, most);
  const std::vector<Neighbours> right = exact.nearest(pool, queries, most);
  int64_t hits = 0, all = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    std::set<int64_t> rows;
    for (const Neighbour& neighbour : right[i]) rows.insert(neighbour.row);
    all += static_cast<int64_t>(rows.size());
    for (const Neighbour& neighbour : found[i])
      hits += static_cast<int64_t>(rows.count(neighbour.row));
  }
  return all == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(all);
}

}  // namespace artel::transfer
