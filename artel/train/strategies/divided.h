// What strategies have in common in which each worker keeps only a part of the network.
#pragma once

#include <utility>

#include "artel/train/divided_state.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"
#include "artel/train/swapped_averages.h"

namespace artel {

class DividedStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void before_test() override { gather_weights(); }
  // At the end of an epoch, the network is tested.
  void after_step(int64_t step) override {
    if (step % fit_.steps_per_epoch == 0 && (fit_.tests || fit_.whole)) gather_weights();
  }
  bool finish() override {
    if (fit_.tests || fit_.whole) gather_weights();
    return false;
  }
  void settle(int64_t, const Pause& pause) override {
    if (!pause.ends || !fit_.whole) return;
    gather_weights();
    divided()->gather_optimizer();
  }
  // Each worker swaps what it updates, and all get all of it: the averages, then the weights.
  void with_averages(const std::function<void()>& test) override {
    {
      const SwappedAverages swapped(fit_.stepper->update(), updated());
      spread_weights();
      test();
    }
    spread_weights();
  }
  bool can_lose_workers() const override { return mirror_every() > 0; }
  int64_t mirror_every() const override { return fit_.options_of<MirrorOptions>().mirror_every; }
  std::vector<DividedPart> updated_parts() override {
    const KeptRanges ranges = updated();
    return divided_parts(fit_.parameters, fit_.stepper->update(), ranges, ranges);
  }
  int64_t updated_step() const override { return updated_step_; }

 protected:
  // All workers get all weights, if they do not have them.
  void gather_weights() {
    if (std::exchange(whole_, true)) return;
    fit_.stepper->rest();  // makes room for them
    spread_weights();
  }
  // All workers get all weights from those who update them.
  virtual void spread_weights() = 0;
  // What this worker updates, by parameter.
  virtual KeptRanges updated() const = 0;
  // Updates what this worker does: if that fails in the middle, it is a mixture of two steps.
  template <typename Work>
  void update_to(int64_t step, const Work& work) {
    updated_step_ = -1;
    work();
    updated_step_ = step;
  }

  bool whole_ = false;  // this worker has all weights

 private:
  int64_t updated_step_ = fit_.step;
};

// What was started uses the strategy, which must outlive it: all are waited for, whatever fails.
void wait_for_all(std::vector<comm::Handle>& handles);

// "1 or 2 or 4": the divisors of a number from `least` on.
std::string divisors_of(int number, int least = 1);

// Whether strategies that add up sums, by whatever way, are asked for.
bool adds_sums(const Situation& now);

}  // namespace artel
