// Warns of a training loss that explodes or stops improving. (A NaN loss ends the run.)
//
//   artel::observe::LossWatch watch;
//   if (const auto warning = watch.add({.step = step, .steps = 10'000, .loss = loss}))
//     artel::println("{}", *warning);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace artel::observe {

// True if the loss is so far above that of the first step that the training has diverged. Small
// losses never count as diverged, even if a trained network began with a tiny loss.
bool has_diverged(double first_loss, double loss);

class LossWatch {
 public:
  struct Step {
    int64_t step = 0;
    int64_t steps = 0;  // planned for the whole run; 0 if unknown
    double loss = 0;
    int64_t steps_per_epoch = 0;  // 0 if unknown
    double seconds = 0;           // since the start of the run
  };
  // Returns a one-sentence warning when a problem begins. Ignores losses that are not finite.
  std::optional<std::string> add(const Step& step);

 private:
  bool explodes() const;
  bool stagnates(const Step& step) const;

  int64_t seen_ = 0;   // number of losses so far
  double first_ = 0;   // loss of the first step
  double early_ = 0;   // mean loss of the first steps
  double mean_ = 0;    // moving average
  double lowest_ = 0;  // minimum of the moving average
  Step lowest_at_;     // last step with a clear improvement
  bool told_explosion_ = false, told_stagnation_ = false;
};

}  // namespace artel::observe
