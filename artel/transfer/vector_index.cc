#include "artel/transfer/vector_index.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/base/error.h"

namespace artel::transfer {
namespace {

void check_vectors(const Tensor& vectors, const char* what) {
  require(vectors.shape().rank() == 2 && vectors.dtype() == DType::f32, ErrorKind::shape,
          "[vector index] {}: got {} {}, expected f32 [rows, width]", what,
          to_string(vectors.dtype()), to_string(vectors.shape()));
}

// Sixteen sums side by side, which the compiler turns into vectors.
float squared_distance(const float* a, const float* b, int64_t width) {
  constexpr int64_t kSums = 16;
  float sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= width; i += kSums)
    for (int64_t j = 0; j < kSums; ++j) {
      const float difference = a[i + j] - b[i + j];
      sums[j] += difference * difference;
    }
  for (; i < width; ++i) sums[i % kSums] += (a[i] - b[i]) * (a[i] - b[i]);
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

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
    parallel_for(pool, queries.shape()[0], 1, [&](int64_t begin, int64_t end) {
      Neighbours candidates(rows);
      for (int64_t query = begin; query < end; ++query) {
        for (int64_t row = 0; row < rows; ++row)
          candidates[row] = {row,
                             squared_distance(asked + query * width, vectors + row * width, width)};
        std::partial_sort(candidates.begin(), candidates.begin() + kept, candidates.end(), nearer);
        all[query].assign(candidates.begin(), candidates.begin() + kept);
        for (Neighbour& found : all[query]) found.distance = std::sqrt(found.distance);
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
