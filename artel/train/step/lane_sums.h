// Adds the sums of lanes in the canonical order (comm/collectives/lane_tree.h) as they finish in
// any order.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/exec/device.h"

namespace artel {

class LaneSums {
 public:
  // `lanes` is the total number of lanes. `allocate` returns memory for one lane.
  LaneSums(int lanes, std::function<Memory()> allocate)
      : lanes_(lanes), allocate_(std::move(allocate)) {}

  // Discards all sums and keeps their memory for reuse.
  void clear();
  // Like `clear`, and returns the memory to the system until it is used again.
  void release_memory();
  // Returns memory for a lane with arbitrary content.
  Memory take();
  void give_back(Memory memory) { spare_.push_back(std::move(memory)); }
  // Call when a lane is finished. Adds it to its finished neighbours in the tree.
  void add(int lane, Memory memory, ThreadPool& pool);
  // The maximal subtrees of the range, from left to right. Call once all its lanes are finished.
  std::vector<Memory> partials() const;

 private:
  struct Sum {
    comm::LaneRange lanes;
    Memory memory;
  };

  int lanes_;
  std::function<Memory()> allocate_;
  std::map<int, Sum> sums_;  // by first lane
  std::vector<Memory> spare_;
};

}  // namespace artel
