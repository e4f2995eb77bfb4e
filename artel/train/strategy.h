// How workers train together: what a step is beyond this worker's own lanes.
//
// The loop (train/fit_loop.h) knows epochs, criteria, callbacks and checkpoints, and these verbs; a
// strategy knows how sums, weights and updates travel. Each lives in a file of its own under
// train/strategies and has a line in train/strategies/make_strategy.cc.
//
// A strategy is made when all workers hold the same weights and optimizer state, those of worker 0.
// All calls come from the thread of the loop; unless said otherwise they are collective calls of
// all workers.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "artel/data/loader.h"
#include "artel/ps/report.h"
#include "artel/train/division.h"
#include "artel/train/stepper.h"
#include "artel/train/timeline.h"

namespace artel {

struct TrainerState;

// What a strategy sees of the fit that it serves; all is borrowed.
struct Fit {
  TrainerState& state;
  Stepper& stepper;
  Division& division;
  Timeline* timeline;  // null: not wanted
  int64_t batch_size = 0;
  int64_t steps_per_epoch = 0;
  int64_t last_step = 0;   // after which the fit ends
  int64_t save_every = 0;  // steps; 0: by epochs
  bool saves = false;      // checkpoints are wanted

  // Whether the step is followed by a checkpoint in a run that goes on, too.
  bool saves_after(int64_t step) const {
    return step % steps_per_epoch == 0 || (save_every > 0 && step % save_every == 0);
  }
};

class Strategy {
 public:
  explicit Strategy(const Fit& fit) : fit_(fit) {}
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  struct StepOptions {
    int64_t number = 0;  // from 1
    float learning_rate = 0;
  };
  // Sums over samples since the workers last counted together.
  struct Counts {
    double loss = 0, correct = 0, labels = 0;
    bool stop = false;  // some worker wants to
  };
  struct Outcome {
    bool seen = true;                // this worker had samples of the batch
    double loss = 0, accuracy = 0;   // of what it has seen: means
    std::optional<Counts> together;  // if the workers have counted together after this step
  };
  // Forward, backward, and the update that follows from it.
  virtual Outcome step(const data::Batch& batch, const StepOptions& options) = 0;

  // Whether workers still make collective calls; else each goes its own way, and worker 0 tests and
  // saves alone.
  virtual bool collective() const { return true; }
  // Whether the fit ends after the step just made. `wish` is that of this worker.
  virtual bool stops(const Outcome& outcome, bool wish) const;

  // Before a checkpoint, and at the end of the fit.
  struct Pause {
    bool regular = true;  // it would be made in a run that goes on, too
    bool ends = false;    // the fit is over
  };
  virtual void settle(int64_t step, const Pause& pause);
  // At worker 0, right before it saves: gets what is kept elsewhere.
  virtual void fetch() {}
  // After the last step. Returns whether the weights have changed since.
  virtual bool finish() { return false; }
  // After the last checkpoint.
  virtual void leave() {}

  // What to go on with from the next step on, if not with this.
  virtual std::unique_ptr<Strategy> successor() { return nullptr; }

  struct Traffic {
    double waited_seconds = 0;
    int64_t sent_bytes = 0;
  };
  // Of this fit, what a strategy has succeeded to included.
  virtual Traffic traffic() const { return {}; }
  // What parameter servers have seen.
  virtual ps::Report server_report() { return {}; }

 protected:
  // Runs this worker's lanes. `observing`: see Stepper::Work.
  double compute(const data::Batch& batch, const StepOptions& options, comm::LaneRange observing,
                 const Stepper::Ready& ready);
  // Updates bucket by bucket; `total(b)` waits for the sum of one. `share` of the batch is in them.
  void update(const StepOptions& options, int64_t batch, double share, int lanes,
              const std::function<const std::byte*(int bucket)>& total);
  // The outcome of a step whose sums cover `share` of the batch.
  static Outcome outcome_of(const StepStatistics& statistics, double share);

  Fit fit_;
};

// The strategy that the options ask for. A collective call.
std::unique_ptr<Strategy> make_strategy(const Fit& fit);

}  // namespace artel
