// How workers train together: what a step is beyond this worker's own lanes.
//
// The loop (train/fit_loop.h) deals with epochs, criteria, callbacks and checkpoints and uses these
// verbs; a strategy knows how sums, weights and updates travel. Each has a file of its own under
// train/strategies and a line in train/strategies/registry.cc; tests/unit/run/strategy_test.cc has
// a complete one of a user's.
//
// A strategy is made for a membership of the cluster, when all workers hold the same weights and
// optimizer state, and dropped with it. All calls come from the thread of the loop; unless said
// otherwise they are collective calls of all workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "artel/data/loader.h"
#include "artel/ps/report.h"
#include "artel/train/division.h"
#include "artel/train/gradient_noise.h"
#include "artel/train/stepper.h"
#include "artel/train/strategy_state.h"
#include "artel/train/timeline.h"
#include "artel/train/trainer.h"

namespace artel {

// What a strategy sees of the fit that it serves; all of it is borrowed.
struct Fit {
  Cluster& cluster;
  const Model& model;
  const TrainerOptions& options;
  Parameters& parameters;
  const int64_t& step;                // the last finished one
  int64_t& extra_updates;             // of the optimizer, beyond one in each step
  const std::atomic<bool>& stop;      // this worker wants to stop
  const std::atomic<int64_t>& trace;  // above 0: it wants so many steps traced
  const bool& newcomers;              // others are to be let in after this step; of worker 0
  // Waits for whoever reads the weights and the optimizer state (TrainerState::before_change).
  const std::function<void()>& before_change;
  const StrategyStates& kept;  // of all strategies before this one
  int lanes = 1;               // of a global batch
  // Null for a strategy with a workload of its own (StrategyKind::workload).
  Stepper* stepper = nullptr;
  Division* division = nullptr;
  Timeline* timeline = nullptr;  // null: none
  int64_t batch_size = 0;
  int64_t steps_per_epoch = 0;
  int64_t last_step = 0;    // after which the fit ends
  int64_t save_every = 0;   // steps; 0: by epochs
  int64_t noise_every = 0;  // FitOptions::noise_every
  bool saves = false;       // checkpoints are wanted
  bool tests = false;       // the network is tested after each epoch
  bool whole = true;        // FitOptions::whole
  bool judges = false;      // each epoch is judged, to stop by that
  const data::Dataset& set;

  // The group of all workers; null for one worker.
  comm::Group* group() const { return cluster.group(); }
  // The options of a strategy.
  template <typename T>
  const T& options_of() const {
    return options.strategy_options.of<T>();
  }
  // Whether the parameter with this name is trained.
  bool trained(const std::string& name) const;
  // Whether a checkpoint follows this step even if the run continues.
  bool saves_after(int64_t step) const {
    return step % steps_per_epoch == 0 || (save_every > 0 && step % save_every == 0);
  }
};

class DividedState;
struct DividedPart;

class Strategy {
 public:
  explicit Strategy(const Fit& fit) : fit_(fit) {}
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  struct StepOptions {
    int64_t number = 0;  // from 1
    int64_t update = 0;  // of the optimizer, from 1: see Fit::extra_updates
    float learning_rate = 0;
  };
  // Sums over samples since the workers last counted together.
  struct Counts {
    int64_t samples = 0;
    double loss = 0;                    // weight times loss
    std::optional<double> weight = {};  // absent: all samples count 1
    std::vector<double> metrics = {};   // the sums of all (SummedRegion::metrics)
    bool stop = false;                  // some worker wants to stop
    bool trace = false;                 // worker 0 wants the next steps traced,
    bool newcomers = false;             // and lets others in now
  };
  struct Outcome {
    bool seen = true;                  // this worker had samples of the batch that count
    double loss = 0;                   // of what it has seen: the mean
    std::vector<double> metrics = {};  // and the sums
    std::optional<Counts> together;    // set if the workers counted together after this step
    // Other measurements of the step; on worker 0.
    std::vector<std::pair<std::string, double>> measures = {};
    std::string stops_by = {};                 // why the strategy itself wants to end the fit
    std::optional<double> learning_rate = {};  // that it used, if not the one given
    std::optional<GradientNoise> noise = {};   // if it was to be measured, and can be
  };
  // Forward, backward, and the update that follows from it, as a whole: where workers sum among
  // themselves, a step that throws has changed neither weights nor optimizer state nor running
  // statistics. Where servers update, answers may have arrived in part; they hold the state.
  virtual Outcome step(const data::Batch& batch, const StepOptions& options) = 0;

  // Whether all that `step` does before it hands on the last sums of `compute` leaves weights and
  // optimizer state as they are, so that they can be saved meanwhile.
  virtual bool computes_first() const { return false; }

  // When the step counts, whatever happens here: brings together workers that train apart, if it is
  // time for that, and returns what they have counted since they last did.
  virtual std::optional<Counts> meet(int64_t) { return {}; }

  // When all is counted: what workers do between two steps, such as comparing their speeds.
  virtual void after_step(int64_t step);

  // Before the network is tested: each worker that takes part gets all weights, if it has only a
  // part of them.
  virtual void before_test() {}

  // Whether workers still make collective calls; otherwise each goes its own way, and worker 0
  // tests and saves alone.
  virtual bool collective() const { return true; }
  // Whether all workers hold the same weights and optimizer state after each step.
  virtual bool in_step() const { return false; }
  // Between two steps, of workers that do not go in step: whether they have just come together, so
  // that others may come and go.
  virtual bool has_met() const { return false; }
  // Whether the others can go on when a worker is lost: each has all of the state, or another one
  // has a copy of its part.
  virtual bool can_lose_workers() const { return true; }
  // Whether the fit ends after the step just made. `wish`: this worker wants it to.
  virtual bool stops(const Outcome& outcome, bool wish) const;
  // Whether workers that go apart stop together nevertheless: one that wants to stop asks for that,
  // and the fit ends when `stops` holds.
  virtual bool stops_together() const { return false; }

  // Whether this worker has the weights after the step, an epoch's last, so that it can be tested
  // and saved. A strategy for which that costs much beside an epoch rests now and then.
  virtual bool rests_after(int64_t) const { return true; }
  // Runs a test, in which averaged weights (train/swapped_averages.h) lie where the weights do, on
  // each worker that has these. A collective call where `collective`.
  virtual void with_averages(const std::function<void()>& test);

  // Before a checkpoint, and at the end of the fit.
  struct Pause {
    bool regular = true;  // it would also be made if the run continued
    bool ends = false;    // the fit is over
  };
  virtual void settle(int64_t step, const Pause& pause);
  // Of this worker; no axes: there is no mesh.
  virtual MeshCoordinates coordinates() const { return {}; }
  // What each worker keeps only a part of, so that it can be saved nevertheless; null: nothing.
  virtual DividedState* divided() { return nullptr; }
  // Where `divided`: after how many steps parts are copied to other workers; what this worker
  // updates, of which copies are made; and the step that it is of, also if a step has failed: -1 if
  // it is a mixture.
  virtual int64_t mirror_every() const { return 0; }
  virtual std::vector<DividedPart> updated_parts();
  virtual int64_t updated_step() const { return -1; }
  // Whether weights and optimizer state after the last finished step can be had. Not where they are
  // kept elsewhere and part of the next step, which is then repeated, is in them already.
  virtual bool has_state() const { return true; }
  // On worker 0, right before it saves: gets what is kept elsewhere.
  virtual void fetch() {}
  // After the last step. Returns whether the weights have changed since.
  virtual bool finish() { return false; }
  // After the last checkpoint.
  virtual void leave() {}

  // What it needs to go on where it left off, beside weights and optimizer state: on worker 0 it
  // goes into checkpoints, and on all workers it is kept until the next strategy is made. Called
  // between steps, by each worker for itself.
  virtual StrategyState state() const { return {}; }
  // Before the first step: gets what was kept, the same on all workers (but see
  // StrategyState::tensors); nothing if the run is new. A successor gets what its predecessor
  // gives.
  virtual void restore(const StrategyState&) {}
  // Whose state it is: the first name of the strategy, unless several share a name.
  virtual std::string kept_as() const;

  // The strategy for the steps from here on, if it is not this one.
  virtual std::unique_ptr<Strategy> successor() { return nullptr; }

  struct Traffic {
    double waited_seconds = 0;
    double wire_seconds = 0;  // of exchanging, also while this worker computes
  };
  // Of this fit, including the strategies before this one.
  virtual Traffic traffic() const { return {}; }
  // How workers bring their sums together, for reports.
  virtual ExchangePath path() const { return {}; }
  // What parameter servers have seen.
  virtual ps::Report server_report() { return {}; }

 protected:
  // Runs this worker's lanes. `observing`: see Stepper::Work. The last bucket is ready when weights
  // may change.
  double compute(const data::Batch& batch, const StepOptions& options, comm::LaneRange observing,
                 const Stepper::Ready& ready);
  // The same with all sums of this worker added up, in no particular order, in the region returned,
  // which stays valid until the next step.
  Memory compute_sums(const data::Batch& batch, const StepOptions& options,
                      comm::LaneRange observing);
  // Whether the squares of each lane's gradient are counted in this step: see measure_noise.
  bool measures_noise() const { return !lane_noise_.empty(); }
  // Before the update of a step, where workers have the sum of all gradients; `squares` are those
  // of the sum, which is still to be multiplied by `scale`. The result is in `noise_` until the
  // next step. A collective call.
  void measure_noise(int64_t batch, double squares, float scale);
  // Updates once the last bucket has arrived, so that nothing has changed if one never does;
  // `total(b)` waits for the sum of bucket b. `scale` makes the sums of gradients those of the mean
  // loss: StepStatistics::gradient_scale, divided by the share of the batch that the sums cover.
  void update(const StepOptions& options, int64_t batch, double scale, int lanes,
              const std::function<Memory(int bucket)>& total);
  // The outcome of a step for the samples that the sums cover.
  static Outcome outcome_of(const StepStatistics& statistics);
  // The outcome of a step whose sums cover all workers.
  static Outcome outcome_together(const StepStatistics& statistics, const data::Batch& batch);

  Fit fit_;
  bool adds_gradients_ = false;  // set by strategies that measure the noise of gradients
  std::optional<GradientNoise> noise_;

 private:
  std::vector<LaneNoise> lane_noise_;
};

// The strategy that the options ask for. A collective call.
std::unique_ptr<Strategy> make_strategy(const Fit& fit);

}  // namespace artel
