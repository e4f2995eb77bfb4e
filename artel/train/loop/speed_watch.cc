#include "artel/train/loop/speed_watch.h"

#include <utility>

#include "artel/train/lane_partition.h"

namespace artel {
namespace {

constexpr double kChange = 1.5;

}  // namespace

bool SpeedWatch::has_changed(comm::Group& group, int64_t step, double lane_seconds) {
  if (step % LanePartition::kBalanceEvery != 0) return false;
  struct Window {
    double computing, seconds;
  };
  Window own = {};
  if (first_step_ >= 0)
    own = {(lane_seconds - lane_seconds_) / static_cast<double>(step - first_step_),
           seconds_between(began_, Clock::now())};
  std::vector<Window> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "speed"});
  const bool begins = first_step_ < 0;
  if (!begins && all.front().seconds < window_) return false;
  first_step_ = step;
  lane_seconds_ = lane_seconds;
  began_ = Clock::now();
  if (begins || !std::exchange(warm_, true)) return false;
  std::vector<double> seconds;
  for (const Window& window : all) seconds.push_back(window.computing);
  if (usual_.empty()) {
    usual_ = seconds;
    return false;
  }
  bool changed = false;
  for (size_t i = 0; i < seconds.size(); ++i)
    changed = changed || seconds[i] > kChange * usual_[i] || kChange * seconds[i] < usual_[i];
  changed_ = changed ? changed_ + 1 : 0;
  return changed_ >= patience_;
}

void SpeedWatch::accept() {
  usual_.clear();
  changed_ = 0;
  patience_ *= 2;
  first_step_ = -1;
}

}  // namespace artel
