#include "artel/observe/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "artel/base/text.h"

namespace artel::observe {
namespace {

constexpr int64_t kEarlySteps = 20;
constexpr double kNewest = 0.05;    // weight of the newest loss in the moving average
constexpr double kClearly = 0.005;  // relative decrease that counts as an improvement
constexpr double kAboveEarly = 2, kAboveLowest = 4;
// A large factor, because the loss of one step is noisy.
constexpr double kAboveFirst = 50;
// The smallest early loss to compare with. Untrained networks mostly begin at 0.3 to 10.
constexpr double kSmall = 0.1;
// Patience in steps: at least `kLeastPatience`, at least a quarter of the steps so far, and a tenth
// of the planned steps, limited to `kMostOfPlanned`.
constexpr double kLeastPatience = 1000, kMostOfPlanned = 3000;
constexpr double kShareOfSeen = 0.25, kShareOfPlanned = 0.1;
// Patience also lasts for at least this many epochs or, if epochs are long, seconds.
constexpr int64_t kEpochs = 2;
constexpr double kSeconds = 60;

}  // namespace

bool has_diverged(double first_loss, double loss) {
  return first_loss > 0 && loss > kAboveFirst * std::max(kSmall, first_loss);
}

bool LossWatch::explodes() const {
  if (seen_ > 1 && has_diverged(first_, mean_)) return true;
  return seen_ > kEarlySteps && lowest_ > 0 && mean_ > kAboveEarly * std::max(kSmall, early_) &&
         mean_ > kAboveLowest * lowest_;
}

bool LossWatch::stagnates(const Step& step) const {
  const double patience =
      std::max({kLeastPatience, kShareOfSeen * static_cast<double>(seen_),
                std::min(kMostOfPlanned, kShareOfPlanned * static_cast<double>(step.steps))});
  const int64_t waited = step.step - lowest_at_.step;
  return seen_ > kEarlySteps && static_cast<double>(waited) > patience &&
         (waited >= kEpochs * step.steps_per_epoch ||
          step.seconds - lowest_at_.seconds >= kSeconds);
}

std::optional<std::string> LossWatch::add(const Step& step) {
  if (!std::isfinite(step.loss)) return {};
  if (++seen_ == 1) first_ = step.loss;
  mean_ += (step.loss - mean_) * std::max(kNewest, 1 / static_cast<double>(seen_));
  if (seen_ <= kEarlySteps) early_ = mean_;
  if (seen_ == 1 || mean_ < lowest_ - kClearly * std::fabs(lowest_)) {
    lowest_ = mean_;
    lowest_at_ = step;
    told_stagnation_ = false;
  }
  if (!explodes()) told_explosion_ = false;
  if (explodes() && !std::exchange(told_explosion_, true))
    return fmt::format(
        "the loss explodes: {:.4g}, after {:.4g} in the first step and {:.4g} at its "
        "best; try a lower learning rate or train.clip_norm",
        mean_, first_, lowest_);
  if (stagnates(step) && !std::exchange(told_stagnation_, true))
    return fmt::format(
        "no improvement in training loss ({:.4g}) for {} steps; try another learning rate or "
        "schedule, or stop here",
        mean_, format_count(step.step - lowest_at_.step));
  return {};
}

}  // namespace artel::observe
