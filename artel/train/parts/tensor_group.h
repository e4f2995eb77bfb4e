// The exchange of a tensor group for kernels: sums and gathers the results of shards over a group
// of workers.
#pragma once

#include <string>
#include <vector>

#include "artel/comm/group.h"
#include "artel/exec/shard_exchange.h"

namespace artel {

class TensorGroup final : public ShardExchange {
 public:
  // The shards are divided evenly among the workers of the group, in order. `name` names this
  // worker in errors.
  TensorGroup(comm::Group group, int shards, std::string name);

  void sum(std::span<const float* const> partials, std::span<float> total) override;
  void gather(std::span<std::byte> all, std::span<const size_t> bytes) override;

  double waited_seconds() const { return waited_seconds_; }

 private:
  // Memory that other workers may be able to access.
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
