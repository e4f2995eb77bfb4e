#include "artel/ps/lane_shares.h"

#include <algorithm>
#include <limits>

#include "artel/comm/balance.h"

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

}  // namespace artel::ps
