#include "artel/train/division.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/balance.h"
#include "artel/train/stepper.h"

namespace artel {
namespace {

// Workers are compared once the slowest has computed for this long; a shorter time says more about
// chance than about the worker.
constexpr double kBalanceSeconds = 0.25;

}  // namespace

Division::Division(const Membership& membership, int lanes, data::Loader& loader, Options options)
    : membership_(membership), loader_(loader), sharing_(options.sharing) {
  const int workers = membership.size() / sharing_;
  require(lanes >= workers || options.stand_by, ErrorKind::invalid_argument,
          "cluster.lanes: the run has {}, expected at least one for each of the {} {}; try as many "
          "workers as lanes",
          lanes, workers, sharing_ > 1 ? "tensor groups" : "workers");
  set(comm::LaneLayout::even(lanes, workers));
  if (lanes < workers && membership.rank() == 0)
    log(LogLevel::warning,
        "{} workers for {}: {} stand by until others leave; the number of lanes stays, because "
        "another one would give other bits",
        workers, counted(lanes, "lane"), workers - lanes);
}

double Division::own_share(int64_t samples) const {
  const comm::LaneRange lanes = own();
  const int64_t rows = Stepper::rows_of_lane(samples, layout_.lanes, lanes.last).first -
                       Stepper::rows_of_lane(samples, layout_.lanes, lanes.first).first;
  return static_cast<double>(rows) / static_cast<double>(samples);
}

void Division::divide_among(const Membership& membership) {
  membership_ = membership;
  sharing_ = 1;
  computing_ = 0;
  set(comm::LaneLayout::even(layout_.lanes, membership.size()));
}

void Division::align() {
  if (!membership_.group || sharing_ > 1) return;
  comm::LaneLayout aligned =
      comm::even_aligned_lanes(layout_.lanes, membership_.group->host_numbers());
  if (aligned != layout_) set(std::move(aligned));
}

void Division::set(comm::LaneLayout layout) {
  layout_ = std::move(layout);
  loader_.serve(own().first, own().last, layout_.lanes);
}

double Division::take_seconds_of_a_lane() {
  const double seconds = computing_ / std::max(1, own().size());
  computing_ = 0;
  return seconds;
}

void Division::balance(int64_t step) {
  if (std::ranges::count(layout_.lanes_of_rank, 0) > 0) return;  // nobody has a lane to spare
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

// Speeds vary, so a line comes only if another worker is the slowest, or if it has got or lost more
// than one lane since the last line.
void Division::tell_slowest(int64_t step) {
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
