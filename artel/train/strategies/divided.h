// Common parts of strategies in which each worker keeps only a part of the network.
#pragma once

#include <utility>

#include "artel/train/loop/swapped_averages.h"
#include "artel/train/parts/divided_state.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"

namespace artel {

class DividedStrategy : public Strategy, public DividedFacet {
 public:
  explicit DividedStrategy(const FitView& fit)
      : Strategy(fit, {.computes_first = true,
                       .survives_losses = fit.options_of<MirrorOptions>().mirror_every > 0}) {}

  DividedFacet* divided() override { return this; }
  // Gathers weights for the test at the end of an epoch.
  void after_step(int64_t step) override {
    if (step % fit_.steps_per_epoch == 0 && (fit_.tests || fit_.gather_network)) gather_weights();
  }
  bool finish() override {
    if (fit_.tests || fit_.gather_network) gather_weights();
    return false;
  }
  void settle(int64_t, const Pause& pause) override {
    if (!pause.ends || !fit_.gather_network) return;
    gather_weights();
    state_transfer().gather_optimizer();
  }
  // Each worker swaps the weights that it updates for their averages, and all workers gather them.
  // After the test, the same restores the weights.
  void with_averages(const std::function<void()>& test) override {
    {
      const SwappedAverages swapped(fit_.stepper->update(), updated());
      spread_weights();
      test();
    }
    spread_weights();
  }
  int64_t mirror_every() const override { return fit_.options_of<MirrorOptions>().mirror_every; }
  std::vector<DividedPart> updated_parts() override {
    const KeptRanges ranges = updated();
    return divided_parts(fit_.parameters, fit_.stepper->update(), ranges, ranges);
  }
  int64_t updated_step() const override { return updated_step_; }
  // Does nothing if all workers have them.
  void gather_weights() override {
    if (std::exchange(whole_, true)) return;
    fit_.stepper->release_memory();  // makes room for them
    spread_weights();
  }

 protected:
  // Sends all weights from the workers that update them to all workers.
  virtual void spread_weights() = 0;
  // The ranges that this worker updates, by parameter.
  virtual KeptRanges updated() const = 0;
  // Runs this worker's part of an update. If it fails midway, the part is a mixture of two steps.
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

// Waits for all operations even if some fail, because they use the strategy.
void wait_for_all(std::vector<comm::Handle>& handles);

// "1 or 2 or 4": the divisors of a number that are at least `least`.
std::string divisors_of(int number, int least = 1);

// True if the strategy adds up sums, by any algorithm.
bool adds_sums(const Situation& now);

}  // namespace artel
