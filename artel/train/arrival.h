// The state of a finished step on its way to workers that have just joined, while the others
// compute the next step, which only reads it. Whoever waits for it has no lanes in that step, but
// gets its sums, and so finishes it like all others.
//
// Each of those who have the state sends an equal part of it: 1/n of the bytes leave each of n.
// Internal to train.
#pragma once

#include <future>
#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

class Arrival {
 public:
  // A collective call. `late` says of each rank whether it waits for the state; some do not. The
  // memory is borrowed: nobody may change it, nor use it where it arrives, before `wait` returns.
  Arrival(comm::Group& group, const std::vector<bool>& late,
          const std::vector<std::span<float>>& state);
  // Waits, but never throws.
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // From any thread: returns when this worker has sent, or received, everything. Throws if the
  // group has broken.
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
