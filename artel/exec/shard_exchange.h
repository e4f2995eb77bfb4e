// Exchanges between the workers of a tensor group during a lane's program.
#pragma once

#include <cstddef>
#include <span>

namespace artel {

class ShardExchange {
 public:
  virtual ~ShardExchange() = default;

  // `partials` are the sums of this worker's subtrees of the tree over shards, from left to right,
  // each as large as the total. All workers get the total.
  virtual void sum(std::span<const float* const> partials, std::span<float> total) = 0;
  // The workers' parts of `all` follow each other; each has filled its own, with this many bytes
  // for each worker.
  virtual void gather(std::span<std::byte> all, std::span<const size_t> bytes) = 0;
};

}  // namespace artel
