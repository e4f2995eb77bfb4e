// Which samples each worker has: ranges in order, whose sizes follow the workers' speeds. All
// workers compute the same value from the same numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/comm/group.h"

namespace artel::ps {

class SampleShares {
 public:
  explicit SampleShares(int workers);  // equal ones

  struct Range {
    int64_t first = 0, last = 0;  // `last` exclusive
  };
  Range range(int worker, int64_t samples) const;

  // The shares with which all would need the same time, given the seconds that each needs now; 0
  // means that a worker is gone. The shares stay as they are unless the slowest worker would gain
  // more than that part of its time.
  SampleShares balanced(const std::vector<float>& seconds, double least_gain) const;
  // Whether a worker that is gone still has a share.
  bool has_orphans(const std::vector<float>& seconds) const;

  bool operator==(const SampleShares& other) const {
    return layout_.lanes_of_rank == other.layout_.lanes_of_rank;
  }

 private:
  comm::LaneLayout layout_;  // lanes: equal parts of all samples
};

}  // namespace artel::ps
