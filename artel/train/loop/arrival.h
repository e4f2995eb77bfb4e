// Transfers the state of a finished step to newcomers while the other workers compute the next
// step, which only reads it. A newcomer has no lanes in that step but receives its sums, and so
// finishes it like the others.
//
// Each of the n workers with the state sends 1/n of the bytes. Internal to train.
#pragma once

#include <future>
#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

class Arrival {
 public:
  // Collective. `late` marks the ranks that wait for the state; at least one rank must have it.
  // Borrows the memory until `wait` returns: senders must not change it, and receivers must not use
  // it.
  Arrival(comm::Group& group, const std::vector<bool>& late,
          const std::vector<std::span<float>>& state);
  // Waits without throwing.
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // Waits until this worker has sent or received everything. Any thread may call it. Throws if the
  // group has failed.
  void wait() const;

 private:
  void send(const std::vector<int>& to, size_t first, size_t stride);
  void receive(const std::vector<int>& from);

  comm::Group group_;
  std::vector<std::span<std::byte>> pieces_;
  std::shared_future<void> transfer_;
};

// Lanes divided evenly among the ranks that are not late.
comm::LaneLayout lanes_without(const std::vector<bool>& late, int lanes);

}  // namespace artel
