#include "artel/comm/balance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace artel::comm {
namespace {

double slowest(const std::vector<int>& lanes, const std::vector<double>& seconds) {
  double time = 0;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i] > 0) time = std::max(time, lanes[i] * seconds[i]);
  return time;
}

}  // namespace

LaneLayout balanced_lanes(const LaneLayout& old, const std::vector<double>& seconds,
                          double least_gain) {
  // Lanes are given one by one to the worker that would finish first: optimal for equal lanes.
  LaneLayout layout = {old.lanes, {}};
  for (const double each : seconds) layout.lanes_of_rank.push_back(std::isfinite(each) ? 1 : 0);
  const auto fastest =
      static_cast<size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
  int dealt = std::accumulate(layout.lanes_of_rank.begin(), layout.lanes_of_rank.end(), 0);
  for (; dealt < old.lanes; ++dealt) {
    size_t best = fastest;
    for (size_t i = 0; i < seconds.size(); ++i)
      if ((layout.lanes_of_rank[i] + 1) * seconds[i] <
          (layout.lanes_of_rank[best] + 1) * seconds[best])
        best = i;
    ++layout.lanes_of_rank[best];
  }
  const bool gains = slowest(layout.lanes_of_rank, seconds) <
                     (1 - least_gain) * slowest(old.lanes_of_rank, seconds);
  return gains ? layout : old;
}

}  // namespace artel::comm
