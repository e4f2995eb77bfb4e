// How many lanes each worker is to have when workers run apart, by their speeds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "artel/comm/group.h"

namespace artel::ps {

class LaneShares {
 public:
  LaneShares() = default;
  // Even at first.
  LaneShares(int lanes, int workers)
      : layout_(comm::LaneLayout::even(lanes, workers)), seconds_(static_cast<size_t>(workers)) {}

  // Those from an iteration on, as a worker asks for them that needs so many seconds for a lane.
  // The first to ask fixes them for all. Workers that are not present get none.
  const std::vector<int>& from(int64_t iteration, int worker, double seconds,
                               const std::function<bool(int worker)>& present);

 private:
  comm::LaneLayout layout_;
  std::vector<double> seconds_;
  std::map<int64_t, comm::LaneLayout> decided_;  // by the iteration from which they hold
};

}  // namespace artel::ps
