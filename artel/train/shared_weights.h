// Weights of which each worker of a machine keeps a part, and which all of them read where they
// lie: the pages of a part are in memory that its keeper shares, and in the memory of the others
// they are the same pages. So nothing is gathered: what a keeper has written is there.
//
// Pages that do not belong to one worker as a whole, at the borders of parts, are copied.
#pragma once

#include <span>
#include <vector>

#include "artel/comm/group.h"

namespace artel {

class SharedWeights {
 public:
  // By worker: the memory that it keeps. All workers name the same, each at its own addresses, and
  // may have anything in what others keep. A collective call.
  using Kept = std::vector<std::vector<std::span<float>>>;
  SharedWeights(comm::Group& group, Kept kept);
  // This worker alone has its part again, and nothing of the others.
  ~SharedWeights();
  SharedWeights(const SharedWeights&) = delete;
  SharedWeights& operator=(const SharedWeights&) = delete;

  // Whether all workers can reach each other's memory; otherwise nothing is shared.
  bool works() const { return memory_ != nullptr; }

  // A collective call. Before it, each worker writes its part; after it, all read all parts, until
  // they have met again.
  void exchange(comm::Group& group);

 private:
  void map(comm::Group& group, const std::vector<uint64_t>& places);

  Kept kept_;
  int rank_;
  comm::SharedBytes memory_;          // of the whole pages of this worker's part
  std::span<std::byte> own_;          // these
  Kept borders_;                      // of what lies in other pages
  std::vector<size_t> border_bytes_;  // by worker
};

}  // namespace artel
