#include "artel/train/lane_partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "artel/base/log.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/collectives/balance.h"
#include "artel/train/step/stepper.h"

namespace artel {
namespace {

// Minimum computing time of the slowest worker before speeds are compared. Shorter times are noise.
constexpr double kBalanceSeconds = 0.25;

}  // namespace

LanePartition::LanePartition(const Membership& membership, int lanes, data::Loader& loader,
                             int sharing)
    : membership_(membership), loader_(loader), sharing_(sharing) {
  set(comm::LaneLayout::even(lanes, membership.size() / sharing));
}

bool LanePartition::all_have_lanes() const {
  return std::ranges::count(layout_.lanes_of_rank, 0) == 0;
}

double LanePartition::own_share(int64_t samples) const {
  const comm::LaneRange lanes = own();
  const int64_t rows = Stepper::rows_of_lane(samples, layout_.lanes, lanes.last).first -
                       Stepper::rows_of_lane(samples, layout_.lanes, lanes.first).first;
  return static_cast<double>(rows) / static_cast<double>(samples);
}

void LanePartition::divide_among(const Membership& membership) {
  membership_ = membership;
  sharing_ = 1;
  computing_ = 0;
  set(comm::LaneLayout::even(layout_.lanes, membership.size()));
}

void LanePartition::align() {
  if (!membership_.group || sharing_ > 1) return;
  comm::LaneLayout aligned =
      comm::even_aligned_lanes(layout_.lanes, membership_.group->host_numbers());
  if (aligned != layout_) set(std::move(aligned));
}

void LanePartition::set(comm::LaneLayout layout) {
  layout_ = std::move(layout);
  loader_.serve(own().first, own().last, layout_.lanes);
}

double LanePartition::take_seconds_of_a_lane() {
  const double seconds = computing_ / std::max(1, own().size());
  computing_ = 0;
  return seconds;
}

void LanePartition::balance(int64_t step) {
  if (!all_have_lanes()) return;  // no worker has a lane to spare
  std::vector<double> seconds(static_cast<size_t>(membership_.size()));
  membership_.group->all_gather(std::as_bytes(std::span(&computing_, 1)),
                                std::as_writable_bytes(std::span(seconds)), {}, {.label = "speed"});
  if (*std::max_element(seconds.begin(), seconds.end()) < kBalanceSeconds) return;
  computing_ = 0;
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] /= layout_.lanes_of_rank[i];
  comm::LaneLayout better =
      comm::balanced_lanes(layout_, seconds, 0.05, membership_.group->host_numbers());
  if (better.lanes_of_rank == layout_.lanes_of_rank) return;
  log(LogLevel::debug, "step {}: lanes of the workers are now {}", step,
      fmt::join(better.lanes_of_rank, ", "));
  set(std::move(better));
  if (membership_.rank() == 0) tell_slowest(step);
}

// Speeds vary, so a line is logged only if another worker is the slowest, or if it has gained or
// lost more than one lane since the last line.
void LanePartition::tell_slowest(int64_t step) {
  const std::vector<int>& lanes = layout_.lanes_of_rank;
  const auto slowest = static_cast<int>(std::ranges::min_element(lanes) - lanes.begin());
  if (slowest == told_slowest_ && std::abs(lanes[slowest] - told_lanes_) <= 1) return;
  told_slowest_ = slowest;
  told_lanes_ = lanes[slowest];
  log(LogLevel::info, "step {}: {} is the slowest and gets {} of the {} lanes (all: {})", step,
      worker_name(*membership_.group, slowest), lanes[slowest], layout_.lanes,
      fmt::join(lanes, ", "));
}

}  // namespace artel
