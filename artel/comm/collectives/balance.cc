#include "artel/comm/collectives/balance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "artel/comm/collectives/host_lanes.h"

namespace artel::comm {
namespace {

double slowest(const std::vector<int>& lanes, const std::vector<double>& seconds) {
  double time = 0;
  for (size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i] > 0) time = std::max(time, lanes[i] * seconds[i]);
  return time;
}

// Cuts `range` of the tree over [0, lanes) into one part per limit and returns the sizes of the
// parts. Dynamic programming over the parts and the lanes used so far.
std::vector<int> cut_into_few_subtrees(int lanes, LaneRange range,
                                       std::span<const LaneLimits> limits,
                                       std::span<const int> wanted) {
  struct Best {
    size_t subtrees = 0;
    int64_t distance = 0;  // from the wanted sizes: the sum of squares
    int size = 0;          // of the last part
    auto rank() const { return std::tuple(subtrees, distance); }
  };
  std::vector<std::map<int, Best>> best(limits.size() + 1);  // by parts, then by lanes used
  best[0][0] = {};
  for (size_t part = 0; part < limits.size(); ++part)
    for (const auto& [used, before] : best[part])
      for (int size = limits[part].least; size <= std::min(limits[part].most, range.size() - used);
           ++size) {
        const int first = range.first + used, away = size - wanted[part];
        const Best now = {before.subtrees + lane_subtrees(lanes, {first, first + size}).size(),
                          before.distance + static_cast<int64_t>(away) * away, size};
        const auto [known, fresh] = best[part + 1].try_emplace(used + size, now);
        if (!fresh && now.rank() < known->second.rank()) known->second = now;
      }
  std::vector<int> sizes(limits.size());
  int used = range.size();
  for (size_t part = limits.size(); part-- > 0;) {
    const auto found = best[part + 1].find(used);
    if (found == best[part + 1].end()) return {wanted.begin(), wanted.end()};  // cannot be
    used -= sizes[part] = found->second.size;
  }
  return sizes;
}

}  // namespace

LaneLayout aligned_lanes(const LaneLayout& wanted, std::span<const LaneLimits> limits,
                         std::span<const int> hosts) {
  struct Run {  // of workers on one host
    size_t first, last;
  };
  std::vector<Run> runs;
  for (size_t i = 0; i < hosts.size(); ++i)
    if (i > 0 && hosts[i] == hosts[i - 1])
      ++runs.back().last;
    else
      runs.push_back({i, i + 1});
  std::vector<LaneLimits> of_runs;
  std::vector<int> wanted_of_runs;
  for (const Run& run : runs) {
    LaneLimits sum;
    for (size_t i = run.first; i < run.last; ++i) {
      sum.least += limits[i].least;
      sum.most += limits[i].most;
    }
    of_runs.push_back(sum);
    wanted_of_runs.push_back(std::accumulate(wanted.lanes_of_rank.begin() + run.first,
                                             wanted.lanes_of_rank.begin() + run.last, 0));
  }
  const std::vector<int> sizes =
      cut_into_few_subtrees(wanted.lanes, {0, wanted.lanes}, of_runs, wanted_of_runs);
  LaneLayout layout = {wanted.lanes, {}};
  int first = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const size_t count = runs[i].last - runs[i].first;
    const std::vector<int> inside = cut_into_few_subtrees(
        wanted.lanes, {first, first + sizes[i]}, limits.subspan(runs[i].first, count),
        std::span(wanted.lanes_of_rank).subspan(runs[i].first, count));
    layout.lanes_of_rank.insert(layout.lanes_of_rank.end(), inside.begin(), inside.end());
    first += sizes[i];
  }
  return layout;
}

LaneLayout even_aligned_lanes(int lanes, std::span<const int> hosts) {
  const auto workers = static_cast<int>(hosts.size());
  const std::vector<LaneLimits> limits(hosts.size(),
                                       {lanes / workers, (lanes + workers - 1) / workers});
  return aligned_lanes(LaneLayout::even(lanes, workers), limits, hosts);
}

int most_host_sums(const LaneLayout& layout, std::span<const int> hosts) {
  const HostLanes plan(layout.lanes, layout.ranges(), hosts);
  size_t most = 0;
  for (int host = 0; host < plan.hosts(); ++host) most = std::max(most, plan.sums(host).size());
  return static_cast<int>(most);
}

int lanes_of_single_sums(int lanes, int most, std::span<const int> hosts) {
  const auto ranks = static_cast<int>(hosts.size());
  for (int more = (lanes / ranks + 1) * ranks; more <= most; more += ranks)
    if (most_host_sums(LaneLayout::even(more, ranks), hosts) == 1) return more;
  return 0;
}

LaneLayout balanced_lanes(const LaneLayout& old, const std::vector<double>& seconds,
                          double least_gain, std::span<const int> hosts) {
  // Greedily assigns each lane to the worker that would finish first, which is optimal for equal
  // lanes.
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
  const double time = slowest(layout.lanes_of_rank, seconds);
  if (!(time < (1 - least_gain) * slowest(old.lanes_of_rank, seconds))) return old;
  if (hosts.empty()) return layout;
  // Any layout that is as fast, or hardly slower.
  constexpr double kSlower = 1.02;
  std::vector<LaneLimits> limits;
  for (const double each : seconds)
    limits.push_back(std::isfinite(each)
                         ? LaneLimits{1, std::min(old.lanes, static_cast<int>(std::min(
                                                                 1e6, kSlower * time / each)))}
                         : LaneLimits{0, 0});
  for (size_t i = 0; i < limits.size(); ++i)
    limits[i].most = std::max(limits[i].most, layout.lanes_of_rank[i]);
  return aligned_lanes(layout, limits, hosts);
}

}  // namespace artel::comm
