// The division of samples among workers into consecutive ranges, sized by speed. All workers
// compute the same division from the same numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "artel/comm/group.h"

namespace artel::ps {

class SampleShares {
 public:
  explicit SampleShares(int workers);  // equal shares

  struct Range {
    int64_t first = 0, last = 0;  // `last` exclusive
  };
  Range range(int worker, int64_t samples) const;

  // The shares with which all workers would take the same time, given their current seconds; 0
  // marks a lost worker. Returns the current shares unless the slowest worker would save more than
  // the share `least_gain` of its time.
  SampleShares balanced(const std::vector<float>& seconds, double least_gain) const;
  // True if a lost worker still has a share.
  bool has_orphans(const std::vector<float>& seconds) const;

  bool operator==(const SampleShares& other) const {
    return layout_.lanes_of_rank == other.layout_.lanes_of_rank;
  }

 private:
  comm::LaneLayout layout_;  // its lanes are equal parts of all samples
};

}  // namespace artel::ps
