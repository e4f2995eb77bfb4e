// One call of Trainer::fit: epochs, criteria, callbacks and checkpoints (fit_loop.cc), after all
// workers have agreed and hold the same state (fit_begin.cc), and traces (fit_trace.cc). How they
// train together is the strategy's affair. If workers die, leave or come, or a callback has the
// cluster form a new group, training goes on with the members that there are then. Internal to
// train.
#pragma once

#include <functional>
#include <future>
#include <limits>
#include <optional>

#include "artel/base/error.h"
#include "artel/data/loader.h"
#include "artel/optim/schedule.h"
#include "artel/train/agreement.h"
#include "artel/train/arrival.h"
#include "artel/train/data_check.h"
#include "artel/train/mirrors.h"
#include "artel/train/restoration.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/strategy.h"
#include "artel/train/timeline.h"
#include "artel/train/trainer_state.h"
#include "artel/train/workload.h"

namespace artel {

class FitLoop {
 public:
  // `options` is borrowed. A collective call, like `run`.
  FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train, const FitOptions& options);
  ~FitLoop();
  FitResult run();
  // Instead of `run`: one step on a global batch that the caller provides. Collective.
  TrainingState step_on(const Tensor& x, const Tensor& y, std::optional<double> learning_rate);
  // After the last such step, and the last call: moves what each worker keeps for itself to the
  // trainer's state. Collective.
  void settle();

 private:
  void with_whoever_is_left(const std::function<void()>& body);
  void regroup(const Error& cause);
  void knock();
  void introduce();
  void compare_data();
  bool accepts_newcomers();
  bool change_members();
  bool others_may_leave_first();
  bool tells_newcomers() const { return adds_exactly_ && s_.in_step; }
  // How many workers the run lets in: more than there are lanes where a worker can be without.
  int most_workers() const { return adds_exactly_ ? std::numeric_limits<int>::max() : s_.lanes; }
  void check_losses(bool progressed);
  void lead();
  void set_phase(std::string_view what, int64_t step);
  void train();
  void resume();
  std::unique_ptr<Workload> make_workload();
  void join();
  void join_if_changed();
  int take_over_state(comm::Group* group, std::string& text);
  void continue_after_own_step();
  void find_room(comm::Group* group);
  struct Source {
    int rank = 0;                 // whose state all go on with
    bool here = false;            // this worker has the same already,
    bool first = false;           // so has worker 0,
    bool everywhere = false;      // and so have all
    bool goes_on = false;         // each goes its own way: this one from its own step
    bool begins = false;          // no worker has trained in another membership
    bool in_parts = false;        // nobody has all of it: it is put together from parts
    std::vector<bool> late = {};  // by rank: if those who do not have it are newcomers, who is one
  };
  Source most_advanced(comm::Group& group) const;
  void check_first_worker() const;
  Facts facts() const;
  void share_state(comm::Group& group, int root);
  bool sends_while_training(const Source& source) const;
  void begin_arrival(comm::Group& group);
  void welcome();
  void hand_out_state(comm::Group& group, DividedState& divided);
  void keep_parts();
  std::string find_parts(comm::Group* group);
  void put_together(comm::Group* group, DividedState* divided);
  void tell_repeated(int64_t steps);
  void mirror();
  void share_history(comm::Group& group, int root, bool joins);
  void catch_up(comm::Group& group, int root);
  void begin_counting();
  void set_strategy(std::unique_ptr<Strategy> strategy);
  void tell_path();
  std::optional<data::Batch> next_batch();

  bool next_step();
  void step(const data::Batch& batch);
  void count(const Strategy::Outcome& outcome);
  void account(const Strategy::Outcome& outcome, const data::Batch& batch);
  void read_traffic();
  void gather_traffic();
  void set_metrics(std::span<const double> sums);
  std::optional<double> noise_scale() const;
  bool averages() const;
  bool traces() const { return trace_from_ >= 0; }
  void follow_trace();
  void begin_trace();
  void end_trace();
  void refuse_trace(const std::string& why);
  void drop_trace();

  void test();
  double judge();
  double watched() const;
  bool improves_best();
  bool watch(double loss);
  void want_to_stop(const std::string& reason);
  void compare_endings();
  bool report();
  void end_epoch();
  void save(bool best);
  bool begins_saving(bool best);
  void write_checkpoint(checkpoint::Snapshot snapshot, bool best, DividedState* divided) const;
  void finish_saving();
  void choose_copies();
  void copy_checkpoint(bool best);
  void not_saved(const Error& error);
  bool leaves_epoch_open() const;
  bool is_saved(int64_t step) const;
  bool ends_within_epoch() const;

  Trainer& trainer_;
  TrainerState& s_;
  const FitOptions& options_;
  const StrategyKind& kind_;     // that the options name
  const StrategyOptions asked_;  // of a mesh that the present workers may be too few for
  DataCheck data_check_;
  const data::DatasetPtr validation_;  // none where the data set has no samples
  data::Loader loader_;
  int64_t per_epoch_;
  Timeline timeline_;
  bool trace_due_ = false;      // all workers know that worker 0 wants a trace
  int64_t trace_from_ = -1;     // the first traced step; -1: none is being traced
  int64_t trace_steps_ = 0;     // as many are wanted
  Metrics metrics_;             // what the sums of a step are of
  bool less_is_better_ = true;  // of `best_by`
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<Strategy> strategy_;
  bool divides_ = false;    // the strategy: each worker has only a part of the state,
  bool gathered_ = false;   // until it is whole again
  Mirrors mirrors_;         // of these parts
  std::vector<bool> late_;  // by rank: who gets the state during the next step; empty: nobody
  std::optional<Arrival> arrival_;
  bool adds_exactly_ = false;               // StrategyKind::adds_exactly, for several workers
  bool newcomers_ = false;                  // all know that others are let in after this step
  std::optional<Restoration> restoration_;  // while a membership begins: how it is put together
  int64_t begun_at_ = -1;                   // the step that this membership began with
  Strategy::Traffic waits_before_;          // of memberships before this one
  WorkerTraffic traffic_, traffic_before_;  // of all memberships, and of those before this one
  std::optional<optim::Schedule> schedule_;
  std::optional<optim::PlateauReducer> plateau_;
  TrainingState now_;
  FitResult result_;
  bool asked_to_stop_ = false;  // before the last step
  std::string reason_;          // why this worker wants to stop
  Clock::time_point begin_ = Clock::now();
  std::optional<double> given_rate_;
  std::vector<double> last_step_;      // its number and what it gave, for those who have missed it
  int64_t told_ = -1;                  // the last step that callbacks here know of; -1: none yet
  std::filesystem::path checkpoints_;  // of all; worker 0 makes them
  int64_t saved_ = -1;
  int64_t best_ = -1;        // the step of the best checkpoint of this fit
  bool keeps_copy_ = false;  // of each checkpoint, on its own machine
  bool leads_ = false;       // this worker has been worker 0
  // After which step, and when, worker 0 was asked to leave.
  std::optional<std::pair<int64_t, Clock::time_point>> asked_to_leave_;
  bool rejoined_ = false;                     // others, after a group had broken
  std::vector<MembershipChange::Gone> lost_;  // since the last membership
  Clock::time_point broken_at_;
  Clock::time_point phase_began_ = Clock::now();
  std::optional<Clock::time_point> interrupted_;  // when the step began that was broken off first
  int64_t broken_after_ = -1;                     // the step after which a group broke last
  std::optional<Error> unsaved_;                  // why the last state that was to be saved was not
  // Writes the state after a step while the next one computes, which only reads it.
  std::future<void> saving_;
};

}  // namespace artel
