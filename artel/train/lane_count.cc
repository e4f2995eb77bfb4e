#include "artel/train/lane_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "artel/base/plural.h"

namespace artel {

int default_lanes(int64_t batch, bool batch_norm) {
  constexpr int64_t kMost = 8, kSamplesOfBatchNorm = 32;
  const int64_t fit = batch_norm ? batch / kSamplesOfBatchNorm : batch;
  return static_cast<int>(
      std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(fit, 1, kMost))));
}

LaneCount lanes_of_new_run(const LaneRequest& request) {
  const int before =
      request.asked > 0 ? request.asked : default_lanes(request.batch, request.batch_norm);
  const int least = request.workers / request.sharing;
  if (before >= least) return {before, before};
  // The next power of two, limited by the number of samples.
  const auto next = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(least)));
  return {static_cast<int>(std::max<int64_t>(least, std::min(next, request.batch))), before};
}

std::string raised_lanes_text(const LaneCount& count, int workers) {
  return fmt::format(
      "{} instead of {}, because the run has {} workers; its bits differ from those of runs with "
      "fewer workers",
      counted(count.lanes, "lane"), count.before, workers);
}

}  // namespace artel
