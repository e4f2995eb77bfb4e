// The workers of a tensor group as kernels see them: adds up and gathers what their shards have
// computed, over a group of workers.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/exec/shard_exchange.h"

namespace artel {

class TensorGroup final : public ShardExchange {
 public:
  // The shards are divided evenly among the workers of the group, in their order. `name` is what
  // errors call this worker.
  TensorGroup(comm::Group group, int shards, std::string name);

  void sum(std::span<const float* const> partials, std::span<float> total) override;
  void gather(std::span<std::byte> all, std::span<const size_t> bytes) override;

  double waited_seconds() const { return waited_seconds_; }

 private:
  // Memory that the other workers may be able to reach.
  std::span<std::byte> shared(size_t number, size_t bytes);
  void together(const std::function<void()>& operation);

  comm::Group group_;
  comm::LaneLayout layout_;
  std::string name_;
  struct Shared {
    comm::SharedBytes memory;
    size_t bytes = 0;
  };
  std::vector<Shared> shared_;
  double waited_seconds_ = 0;
};

}  // namespace artel
