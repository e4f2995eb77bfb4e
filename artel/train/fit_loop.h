// One call of Trainer::fit: epochs, criteria, callbacks and checkpoints (fit_loop.cc), after all
// workers have agreed and hold the same state (fit_begin.cc). How they train together is the
// strategy's affair. Internal to train.
#pragma once

#include <optional>

#include "artel/data/loader.h"
#include "artel/optim/schedule.h"
#include "artel/train/agreement.h"
#include "artel/train/strategy.h"
#include "artel/train/timeline.h"
#include "artel/train/trainer_state.h"

namespace artel {

class FitLoop {
 public:
  // `options` is borrowed. A collective call, like `run`.
  FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train, const FitOptions& options);
  ~FitLoop();
  FitResult run();

 private:
  void begin_together();
  Facts facts() const;
  void share_state(comm::Group& group);
  void compile(Stepper& stepper) const;
  void record_kernels();
  void set_strategy(std::unique_ptr<Strategy> strategy);

  void step(const data::Batch& batch);
  void account(const Strategy::Outcome& outcome, const data::Batch& batch);
  void test();
  double judge();
  bool report();
  void end_epoch();
  void save(bool best);
  bool ends_within_epoch() const;

  Trainer& trainer_;
  TrainerState& s_;
  const FitOptions& options_;
  const data::DatasetPtr validation_;  // none where the data set has no samples
  data::Loader loader_;
  int64_t per_epoch_;
  std::unique_ptr<Timeline> timeline_;  // null: not wanted
  Stepper* stepper_ = nullptr;
  std::optional<Division> division_;
  std::unique_ptr<Strategy> strategy_;
  std::optional<optim::Schedule> schedule_;
  std::optional<optim::PlateauReducer> plateau_;
  TrainingState now_;
  FitResult result_;
  Clock::time_point begin_ = Clock::now();
  int64_t batch_ = 0;  // samples of the current global batch
  int64_t saved_ = -1;
};

}  // namespace artel
