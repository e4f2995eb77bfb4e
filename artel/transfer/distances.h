// Vectorised squared Euclidean distances. Internal to transfer.
#pragma once

#include <cstdint>

namespace artel::transfer {

// Distances between `query_count` queries and `vector_count` vectors, rows of `width` floats.
// Writes the first `vector_count` elements of each row of `distances` [queries, stride]. The result
// for a pair does not depend on its neighbours.
struct DistanceBlock {
  const float* queries;
  int64_t query_count;
  const float* vectors;
  int64_t vector_count;
  int64_t width;
  float* distances;
  int64_t stride;
};
void squared_distances(const DistanceBlock& block);

}  // namespace artel::transfer
