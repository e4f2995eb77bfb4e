// Adds up what lanes leave behind, in the canonical order (comm/lane_tree.h), as they finish in any
// order.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/comm/lane_tree.h"
#include "artel/exec/device.h"

namespace artel {

class LaneSums {
 public:
  // Of `lanes` lanes in all; `allocate` gives memory for one lane.
  LaneSums(int lanes, std::function<Memory()> allocate)
      : lanes_(lanes), allocate_(std::move(allocate)) {}

  // Forgets all sums, but keeps their memory for other lanes.
  void clear();
  // The same, and gives the memory back to the system until it is used again.
  void rest();
  // Memory for a lane, whose content may be old.
  Memory take();
  void give_back(Memory memory) { spare_.push_back(std::move(memory)); }
  // The lane is finished: adds it to its neighbours as far as they are there.
  void add(int lane, Memory memory, ThreadPool& pool);
  // Once all lanes of a range are there: its maximal subtrees, from left to right.
  std::vector<Memory> partials() const;

 private:
  struct Sum {
    comm::LaneRange lanes;
    Memory memory;
  };

  int lanes_;
  std::function<Memory()> allocate_;
  std::map<int, Sum> sums_;  // by their first lane
  std::vector<Memory> spare_;
};

}  // namespace artel
