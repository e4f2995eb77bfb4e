// One call of Trainer::fit: the loop, its criteria and what it saves (fit_loop.cc), what workers do
// together (fit_together.cc), what each keeps (fit_own.cc), and what they do with parameter servers
// (fit_servers.cc). Internal to train.
#pragma once

#include <limits>
#include <optional>

#include "artel/data/loader.h"
#include "artel/train/agreement.h"
#include "artel/train/averaging.h"
#include "artel/train/exchange.h"
#include "artel/train/remote_parameters.h"
#include "artel/train/saving.h"
#include "artel/train/timeline.h"
#include "artel/train/trainer_state.h"

namespace artel {

class Trainer::FitLoop {
 public:
  // `options` is borrowed. A collective call, like `run`.
  FitLoop(Trainer& trainer, data::DatasetPtr train, const FitOptions& options);
  ~FitLoop();
  FitResult run();

 private:
  // Workers compare their speeds every so many steps.
  static constexpr int64_t kBalanceEvery = 16;

  void begin_together();
  Facts facts() const;
  void share_state(comm::Group& group);
  void begin_serving();
  void begin_averaging(int64_t every, const std::string& compress);
  std::string purpose();
  void restore_own(comm::Group& group);
  void compile(Stepper& stepper) const;
  void record_kernels();
  void set_layout(comm::LaneLayout layout);

  void step(const data::Batch& batch);
  void step_with_servers(const data::Batch& batch);
  void update(const std::vector<Bucket>& buckets);
  bool meets_anyway() const;
  bool saves_anyway() const;
  bool meets() const;
  void meet();
  void judge_meeting(double seconds);
  void account(const StepStatistics& own, const data::Batch& batch);
  double judge();
  bool report();
  void end_epoch();
  void settle();
  void keep_own(bool between);
  void save(bool best);
  bool ends_within_epoch() const;
  void balance();
  void balance_apart();
  void finish_serving();
  void consider_saving(double computing);

  // The part of a batch of so many samples that this worker has, and the part of the current one
  // that this worker's sums cover.
  double own_share(int64_t samples) const;
  double share() const;
  // Whether this worker's own lanes make an update of their own.
  bool updates_alone() const { return averaging_.has_value() || apart(); }
  Stepper::Work work() const;
  // Whether each worker goes its own way, without collective calls.
  bool apart() const { return remote_ && !remote_->together(); }

  Trainer& trainer_;
  State& s_;
  const FitOptions& options_;
  const data::DatasetPtr validation_;  // none where the data set has no samples
  data::Loader loader_;
  int64_t per_epoch_;
  std::unique_ptr<Timeline> timeline_;  // null: not wanted
  Exchange exchange_;
  std::optional<Averaging> averaging_;      // with local steps
  std::optional<RemoteParameters> remote_;  // with parameter servers
  int64_t local_steps_ = 1;
  Stepper* stepper_ = nullptr;
  std::optional<optim::Schedule> schedule_;
  std::optional<optim::PlateauReducer> plateau_;
  TrainingState now_;
  FitResult result_;
  Clock::time_point begin_ = Clock::now();
  double computing_ = 0;  // seconds since the last balance
  int64_t batch_ = 0;     // samples of the current global batch
  // Of this worker since the last meeting; `stop` is the wish of any worker.
  struct {
    double loss = 0, correct = 0, labels = 0, stop = 0;
  } since_meeting_;
  Exchange::Traffic meetings_;
  int64_t saved_ = -1, settled_ = -1, kept_ = -1, gathered_ = -1;
  OwnState own_;        // as it was kept
  bool saves_ = false;  // checkpoints are wanted
  // While "auto" may still choose to exchange less: what the steps so far have cost.
  bool may_save_bytes_ = false;
  int64_t measured_ = 0;
  StepCost cost_;
  Exchange::Traffic waited_before_;
  // And then, until its choice is settled, what meetings cost.
  int unjudged_meetings_ = 0;
  double meeting_cost_ = std::numeric_limits<double>::infinity();
};

}  // namespace artel
