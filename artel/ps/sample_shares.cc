#include "artel/ps/sample_shares.h"

#include <algorithm>
#include <limits>

#include "artel/comm/collectives/balance.h"

namespace artel::ps {
namespace {

// Fine enough to balance within a few percent for any number of workers.
int parts_for(int workers) { return std::max(1024, 16 * workers); }

}  // namespace

SampleShares::SampleShares(int workers)
    : layout_(comm::LaneLayout::even(parts_for(workers), workers)) {}

SampleShares::Range SampleShares::range(int worker, int64_t samples) const {
  const comm::LaneRange parts = layout_.range(worker);
  return {samples * parts.first / layout_.lanes, samples * parts.last / layout_.lanes};
}

SampleShares SampleShares::balanced(const std::vector<float>& seconds, double least_gain) const {
  std::vector<double> seconds_per_part;
  for (size_t worker = 0; worker < seconds.size(); ++worker)
    seconds_per_part.push_back(seconds[worker] > 0 ? seconds[worker] / layout_.lanes_of_rank[worker]
                                                   : std::numeric_limits<double>::infinity());
  SampleShares better = *this;
  better.layout_ = comm::balanced_lanes(layout_, seconds_per_part, least_gain);
  return better;
}

bool SampleShares::has_orphans(const std::vector<float>& seconds) const {
  for (size_t worker = 0; worker < seconds.size(); ++worker)
    if (seconds[worker] == 0 && layout_.lanes_of_rank[worker] > 0) return true;
  return false;
}

}  // namespace artel::ps
