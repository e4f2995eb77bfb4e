#include "artel/train/balance.h"

#include <algorithm>

namespace artel {
namespace {

double slowest(const std::vector<int>& lanes, const std::vector<double>& seconds) {
  double time = 0;
  for (size_t i = 0; i < lanes.size(); ++i) time = std::max(time, lanes[i] * seconds[i]);
  return time;
}

}  // namespace

comm::LaneLayout balanced_lanes(const comm::LaneLayout& old, const std::vector<double>& seconds) {
  // Lanes are dealt one by one to the worker that would finish them first: optimal for equal lanes.
  comm::LaneLayout layout = {old.lanes, std::vector<int>(seconds.size(), 1)};
  for (int dealt = static_cast<int>(seconds.size()); dealt < old.lanes; ++dealt) {
    size_t best = 0;
    for (size_t i = 1; i < seconds.size(); ++i)
      if ((layout.lanes_of_rank[i] + 1) * seconds[i] <
          (layout.lanes_of_rank[best] + 1) * seconds[best])
        best = i;
    ++layout.lanes_of_rank[best];
  }
  const bool gains =
      slowest(layout.lanes_of_rank, seconds) < 0.95 * slowest(old.lanes_of_rank, seconds);
  return gains ? layout : old;
}

}  // namespace artel
