// Squared Euclidean distances, as fast as the processor multiplies. Internal to transfer.
#pragma once

#include <cstdint>

namespace artel::transfer {

// Of each of `queries` to each of `vectors`, rows of `width` floats: `distances` [queries, stride],
// of which the first `vectors` of each row are written. The result for two vectors does not depend
// on those beside them.
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
