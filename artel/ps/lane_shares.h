// The number of lanes of each asynchronous worker, by measured speed.
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
  // Starts with even shares.
  LaneShares(int lanes, int workers)
      : layout_(comm::LaneLayout::even(lanes, workers)), seconds_(static_cast<size_t>(workers)) {}

  // The shares from `iteration` on. `seconds` is the calling worker's time per lane. The first call
  // for an iteration fixes the shares for all. Absent workers get none.
  const std::vector<int>& from(int64_t iteration, int worker, double seconds,
                               const std::function<bool(int worker)>& present);

  // The shares in force at `iteration` and all later changes, by first iteration.
  std::map<int64_t, std::vector<int>> since(int64_t iteration) const;

 private:
  comm::LaneLayout layout_;
  std::vector<double> seconds_;
  std::map<int64_t, comm::LaneLayout> decided_;  // by first iteration
};

}  // namespace artel::ps
