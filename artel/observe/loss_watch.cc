#include "artel/observe/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "artel/base/text.h"

namespace artel::observe {
namespace {

constexpr int64_t kFirst = 20;      // steps that the beginning consists of
constexpr double kNewest = 0.05;    // weight of the newest loss in the mean
constexpr double kClearly = 0.005;  // a lower mean counts if it is so much lower
constexpr double kAboveFirst = 2, kAboveLowest = 4;
constexpr int64_t kPatience = 1000;   // steps
constexpr double kShareOfAll = 0.25;  // and of all steps so far

}  // namespace

bool LossWatch::explodes() const {
  return seen_ > kFirst && lowest_ > 0 && mean_ > kAboveFirst * first_ &&
         mean_ > kAboveLowest * lowest_;
}

bool LossWatch::stands(int64_t step) const {
  const auto share = static_cast<int64_t>(kShareOfAll * static_cast<double>(seen_));
  return seen_ > kFirst && step - lowest_step_ > std::max(kPatience, share);
}

std::optional<std::string> LossWatch::add(int64_t step, double loss) {
  if (!std::isfinite(loss)) return {};
  ++seen_;
  mean_ += (loss - mean_) * std::max(kNewest, 1 / static_cast<double>(seen_));
  if (seen_ <= kFirst) first_ = mean_;
  if (seen_ <= kFirst || mean_ < lowest_ - kClearly * std::fabs(lowest_)) {
    lowest_ = mean_;
    lowest_step_ = step;
    stood_ = false;
  }
  if (!explodes()) exploded_ = false;
  if (explodes() && !std::exchange(exploded_, true))
    return fmt::format(
        "the loss explodes: {:.4g}, after {:.4g} at the beginning and {:.4g} at its "
        "best; try a lower learning rate or train.clip_norm",
        mean_, first_, lowest_);
  if (stands(step) && !std::exchange(stood_, true))
    return fmt::format(
        "the loss has stood still at {:.4g} for {} steps: another learning rate or "
        "schedule may help, or the network has learnt what it can",
        mean_, format_count(step - lowest_step_));
  return {};
}

}  // namespace artel::observe
