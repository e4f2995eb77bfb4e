// One call of Trainer::fit: epochs, callbacks, and checkpoints (fit_loop.cc), after all workers
// have agreed and hold the same state (fit_begin.cc). EpochJudge judges epochs, StepTracer traces
// steps, and the strategy exchanges sums. When the membership changes, because workers die, leave,
// or join, or a callback forms a new group, training continues with the new members. Internal to
// train.
#pragma once

#include <functional>
#include <optional>

#include "artel/base/error.h"
#include "artel/data/loader.h"
#include "artel/optim/schedule.h"
#include "artel/train/loop/departures.h"
#include "artel/train/loop/epoch_judge.h"
#include "artel/train/loop/interruptions.h"
#include "artel/train/loop/introduction.h"
#include "artel/train/loop/newcomers.h"
#include "artel/train/loop/parts_recovery.h"
#include "artel/train/loop/saver.h"
#include "artel/train/loop/speed_watch.h"
#include "artel/train/loop/state_source.h"
#include "artel/train/loop/step_tracer.h"
#include "artel/train/loop/traffic_meter.h"
#include "artel/train/loop/weight_readers.h"
#include "artel/train/step/workload.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"
#include "artel/train/trainer_state.h"

namespace artel {

class FitLoop {
 public:
  // Borrows `options`. Collective, like `run`.
  FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train, const FitOptions& options);
  ~FitLoop();
  FitResult run();
  // Alternative to `run`: one step on a global batch provided by the caller. Collective.
  TrainingState step_on(const Tensor& x, const Tensor& y, std::optional<double> learning_rate);
  // Call after the last such step, and as the last call. Moves each worker's own state to the
  // trainer's state. Collective.
  void settle();

 private:
  void with_remaining_workers(const std::function<void()>& body);
  void regroup(const Error& cause);
  void enter();
  bool change_members();
  void lead();
  void set_phase(std::string_view what, int64_t step);
  void train();
  void finish();
  void resume();
  std::unique_ptr<Workload> make_workload();
  void join();
  void join_if_changed();
  int take_over_state(comm::Group* group, std::string& text);
  void watch_speeds();
  bool sends_while_training(const StateSource& source) const;
  void log_repeated_steps(int64_t steps);
  void mirror();
  void share_history(comm::Group& group, int root, bool joins);
  void catch_up(comm::Group& group, int root);
  void set_strategy(std::unique_ptr<Strategy> strategy);
  void log_exchange_path();
  void log_divided_subtrees();
  std::optional<data::Batch> next_batch();

  bool next_step();
  bool compares_files() const;
  void prune();
  void step(const data::Batch& batch);
  void account(const Strategy::Outcome& outcome, const data::Batch& batch);
  void gather_traffic();
  void set_metrics(std::span<const double> sums);
  bool averages() const;

  void test();
  double measure_epoch();
  void want_to_stop(const std::string& reason);
  void compare_endings();
  bool report();
  void end_epoch();
  void save(bool best);
  bool leaves_epoch_open() const;
  bool is_saved(int64_t step) const;
  bool judges_open_epoch();

  Trainer& trainer_;
  TrainerState& s_;
  const FitOptions& options_;
  const StrategyKind& kind_;           // named by the options
  const StrategyOptions asked_;        // the configured mesh; may need more workers
  const data::DatasetPtr validation_;  // null for a data set without samples
  data::Loader loader_;
  int64_t per_epoch_;
  StepTracer tracer_;
  Introduction introduction_;
  Metrics metrics_;  // metrics of a step's sums
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Strategy> strategy_;
  bool divides_ = false;   // each worker has only a part of the state
  bool gathered_ = false;  // all workers currently have the whole state
  PartsRecovery parts_;    // copies of these parts
  Newcomers newcomers_;
  Departures departures_;
  Interruptions interruptions_;
  std::optional<SpeedWatch> speeds_;  // where Artel chooses the mesh
  std::optional<TrafficMeter> traffic_;
  std::optional<optim::Schedule> schedule_;
  std::optional<EpochJudge> judge_;  // set once `metrics_` are known
  TrainingState now_;
  FitResult result_;
  bool meets_ = false;          // all workers exchanged sums in the last step
  bool asked_to_stop_ = false;  // before the last step
  std::string reason_;          // why this worker wants to stop
  Clock::time_point begin_ = Clock::now();
  std::optional<double> given_rate_;
  std::vector<double> last_step_;    // number and results, for workers that missed it
  int64_t last_reported_step_ = -1;  // the last step reported to callbacks here; -1 if none
  double taken_ = 0;                 // bytes of memory in use before the network was created
  // The participant that was worker 0 when this fit began. Has no number once this worker has its
  // state, and for newcomers.
  comm::control::Participant first_worker_;
  bool leads_ = false;  // this worker has been worker 0
  Saver saver_;         // destroyed first: it may be reading the state
  const WeightReaders readers_;
};

}  // namespace artel
