#include "artel/train/loop/departures.h"

namespace artel {

std::vector<int> Departures::leavers() {
  comm::Group* const group = s_.cluster.group();
  const bool asks = std::exchange(expected_, false) || parts_.mirrors().copying(s_.step);
  if (s_.cluster.size() == 1) return wished() ? std::vector{0} : std::vector<int>();
  if (s_.alone || !asks) return {};
  const auto own = static_cast<std::byte>(wished());
  std::vector<std::byte> all(static_cast<size_t>(group->size()));
  group->all_gather(std::span(&own, 1), all, {}, {.label = "workers that leave"});
  std::vector<int> ranks;
  for (int rank = 0; rank < group->size(); ++rank)
    if (all[rank] != std::byte{}) ranks.push_back(rank);
  return ranks;
}

bool Departures::may_leave(const std::vector<int>& leavers) {
  constexpr int64_t kSteps = 2;
  constexpr double kSeconds = 0.5;
  if (!wished()) return false;
  if (parts_.mirrors().at_work())
    return parts_.mirrors().copying(s_.step) && !leavers.empty() &&
           leavers.back() == s_.cluster.rank();
  if (s_.cluster.rank() != 0) return true;
  if (!asked_) asked_ = {s_.step, Clock::now()};
  return s_.step >= asked_->first + kSteps &&
         seconds_between(asked_->second, Clock::now()) >= kSeconds;
}

}  // namespace artel
