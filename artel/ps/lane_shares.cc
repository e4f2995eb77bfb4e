#include "artel/ps/lane_shares.h"

#include <algorithm>
#include <limits>

#include "artel/comm/collectives/balance.h"

namespace artel::ps {

const std::vector<int>& LaneShares::from(int64_t iteration, int worker, double seconds,
                                         const std::function<bool(int worker)>& present) {
  seconds_[static_cast<size_t>(worker)] = seconds;
  const auto [decided, is_new] = decided_.try_emplace(iteration, layout_);
  if (is_new) {
    std::vector<double> all = seconds_;
    for (size_t each = 0; each < all.size(); ++each)
      if (!present(static_cast<int>(each))) all[each] = std::numeric_limits<double>::infinity();
    if (std::find(all.begin(), all.end(), 0.0) == all.end())
      layout_ = comm::balanced_lanes(layout_, all);
    decided->second = layout_;
  }
  return decided->second.lanes_of_rank;
}

std::map<int64_t, std::vector<int>> LaneShares::since(int64_t iteration) const {
  std::map<int64_t, std::vector<int>> changes;
  auto at = decided_.upper_bound(iteration);
  if (at != decided_.begin()) --at;
  const std::vector<int>* last = nullptr;
  for (; at != decided_.end(); ++at) {
    const std::vector<int>& lanes = at->second.lanes_of_rank;
    if (!last || *last != lanes) changes[at->first] = lanes;
    last = &lanes;
  }
  return changes;
}

}  // namespace artel::ps
