// Sharded weights that all workers of a machine read in place. The pages of a part are shared
// memory of its owner, mapped into the memory of the other workers, so no gathering is needed.
//
// Pages at the borders of parts, which belong to several workers, are copied.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

class SharedWeights {
 public:
  // Collective. `Kept` lists the memory of each worker's part; all workers pass the same parts at
  // their own addresses. The content of other workers' parts is ignored.
  using Kept = std::vector<std::vector<std::span<float>>>;
  SharedWeights(comm::Group& group, Kept kept);
  // Makes this worker's part private again and releases the others.
  ~SharedWeights();
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

  // True if all workers can map each other's memory. Otherwise nothing is shared.
  bool works() const { return memory_ != nullptr; }

  // Collective. Each worker writes its part before the call and may read all parts after it, until
  // the next collective call.
  void exchange(comm::Group& group);

 private:
  void map(comm::Group& group, const std::vector<uint64_t>& places);

  Kept kept_;
  int rank_;
  comm::SharedBytes memory_;          // whole pages of this worker's part
  std::span<std::byte> own_;          // view of memory_
  Kept borders_;                      // ranges in other pages
  std::vector<size_t> border_bytes_;  // by worker
};

}  // namespace artel
