// Judges epochs: tracks the best one, stops the fit early, and reduces the learning rate on a
// plateau. Its data is in the trainer's state, and therefore in checkpoints. Internal to train.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/nn/metric.h"
#include "artel/optim/schedule.h"
#include "artel/train/trainer.h"

namespace artel {

struct TrainerState;

class EpochJudge {
 public:
  // Borrows state and options. Throws for criteria that need a metric that is not measured.
  EpochJudge(TrainerState& state, const FitOptions& options, const Metrics& measured,
             const data::SampleLayout& layout);

  // Call after replacing the trainer's state.
  void restore();

  // The plateau's factor of the learning rate.
  double rate_factor() const { return plateau_ ? plateau_->factor() : 1; }

  // True if `now` is the best state so far. If so, records it as the best.
  bool improves_best(const TrainingState& now);

  struct Verdict {
    bool best = false;
    std::vector<std::string> reasons = {};  // for ending the fit
  };
  // Judges a whole epoch. `loss` is the watched loss.
  Verdict judge(const TrainingState& now, double loss);

 private:
  double watched(const TrainingState& now) const;

  TrainerState& s_;
  const FitOptions& options_;
  bool less_is_better_ = true;  // for the metric named by `best_by`
  std::optional<optim::PlateauReducer> plateau_;
};

}  // namespace artel
