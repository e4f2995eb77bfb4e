// Strategies: how workers combine their results in each step.
//
// The loop (train/loop/fit_loop.h) handles epochs, criteria, callbacks, and checkpoints. It calls
// the functions below; a strategy implements how sums, weights, and updates travel. Each strategy
// has its own file in train/strategies and a line in train/strategies/registry.cc.
// tests/unit/run/strategy_test.cc contains a complete custom strategy.
//
// A strategy is created for a membership of the cluster, when all workers hold the same weights and
// optimizer state, and destroyed with it. All calls come from the loop's thread. Unless noted
// otherwise they are collective calls of all workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "artel/data/loader.h"
#include "artel/ps/report.h"
#include "artel/train/lane_partition.h"
#include "artel/train/loop/gradient_noise.h"
#include "artel/train/loop/timeline.h"
#include "artel/train/step/stepper.h"
#include "artel/train/strategy_state.h"
#include "artel/train/trainer.h"

namespace artel {

class WeightReaders;

// A strategy's view of its fit. Everything is borrowed.
struct FitView {
  Cluster& cluster;
  const Model& model;
  const TrainerOptions& options;
  Parameters& parameters;
  const int64_t& step;                // the last finished step
  int64_t& extra_updates;             // optimizer updates beyond one per step
  const std::atomic<bool>& stop;      // this worker wants to stop
  const std::atomic<int64_t>& trace;  // above 0: a trace of this many steps is requested here
  const bool& newcomers;              // on worker 0: newcomers join after this step
  const bool& leaves;                 // this worker wants to leave after this step
  const WeightReaders& readers;       // to wait for before weights or optimizer state change
  const StrategyStates& kept;         // of all earlier strategies
  int lanes = 1;                      // per global batch
  // Null for a strategy with a workload of its own (StrategyKind::workload).
  Stepper* stepper = nullptr;
  LanePartition* lane_partition = nullptr;
  Timeline* timeline = nullptr;  // null without a timeline
  int64_t batch_size = 0;
  int64_t steps_per_epoch = 0;
  int64_t last_step = 0;       // of the fit
  int64_t save_every = 0;      // steps; 0: at the end of epochs
  int64_t noise_every = 0;     // FitOptions::noise_every
  bool saves = false;          // checkpoints are enabled
  bool tests = false;          // the network is tested after each epoch
  bool gather_network = true;  // FitOptions::gather_network
  bool judges = false;         // early stopping is enabled
  const data::Dataset& set;

  // The group of all workers; null for one worker.
  comm::Group* group() const { return cluster.group(); }
  // The strategy's options.
  template <typename T>
  const T& options_of() const {
    return options.strategy_options.of<T>();
  }
  // True if the parameter with this name is trained.
  bool trained(const std::string& name) const;
  // True if a checkpoint follows this step even if the run continues.
  bool saves_after(int64_t step) const {
    return step % steps_per_epoch == 0 || (save_every > 0 && step % save_every == 0);
  }
};

class DividedStateTransfer;
struct DividedPart;

// Properties of a strategy. The loop checks these, never a strategy's name.
struct StrategyTraits {
  // `step` only reads weights and optimizer state until it hands on the last sums of `compute`, so
  // a checkpoint can be written concurrently with the forward and backward pass.
  bool computes_first = false;
  // All workers make the same collective calls. If false, workers run independently, and worker 0
  // evaluates and saves alone.
  bool collective = true;
  // All workers hold the same weights and optimizer state after each step.
  bool in_step = false;
  // The run survives the loss of a worker: each has all of the state, or another one has a copy of
  // its part.
  bool survives_losses = true;
  // Independent workers stop together: a worker that wants to stop requests it, and the fit ends
  // when `stops` returns true.
  bool stops_together = false;
  // The name of the state in checkpoints; empty for the strategy's first name.
  std::string state_name = {};
  // This worker's mesh coordinates; empty without a mesh.
  MeshCoordinates coordinates = {};

  // The following change from step to step.
  // This worker has the weights after the last step, so it can test and save them. False between
  // gathers if gathering weights is expensive compared with an epoch.
  bool has_weights = true;
  // Independent workers have just been averaged, so newcomers may join and workers may leave.
  bool has_met = false;
};

// Interface of strategies in which each worker keeps only a part of the state.
class DividedFacet {
 public:
  virtual ~DividedFacet() = default;
  // The state for saving and handing out.
  virtual DividedStateTransfer& state_transfer() = 0;
  // Gives all weights to each worker. Collective.
  virtual void gather_weights() = 0;
  // Number of steps between copies of parts to other workers; 0 disables.
  virtual int64_t mirror_every() const = 0;
  // The parts that this worker updates, to be copied, and their step. Valid after a failed step: -1
  // if the parts are a mixture of two steps.
  virtual std::vector<DividedPart> updated_parts() = 0;
  virtual int64_t updated_step() const = 0;
};

// Interface of strategies whose weights are on parameter servers.
class ServedFacet {
 public:
  virtual ~ServedFacet() = default;
  // True if weights and optimizer state after the last finished step are available. False if they
  // already contain part of the next step, which is then repeated.
  virtual bool has_state() const { return true; }
  // Call on worker 0 right before it saves.
  virtual void fetch() {}
  // Call after the last checkpoint.
  virtual void leave() = 0;
  virtual ps::Report server_report() = 0;
};

class Strategy {
 public:
  explicit Strategy(const FitView& fit, StrategyTraits traits = {})
      : fit_(fit), traits_(std::move(traits)) {}
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const StrategyTraits& traits() const { return traits_; }
  // Null if the strategy does not have this interface.
  virtual DividedFacet* divided() { return nullptr; }
  virtual ServedFacet* served() { return nullptr; }

  struct StepOptions {
    int64_t number = 0;  // from 1
    int64_t update = 0;  // of the optimizer, from 1; see FitView::extra_updates
    float learning_rate = 0;
  };
  // Sums over the samples since workers last exchanged statistics.
  struct Counts {
    int64_t samples = 0;
    double loss = 0;                    // weight times loss
    std::optional<double> weight = {};  // empty: all samples count 1
    std::vector<double> metrics = {};   // sums of all metrics (SummedRegion::metrics)
    bool stop = false;                  // some worker wants to stop
    bool trace = false;                 // a worker requests a trace
    bool newcomers = false;             // newcomers join after this step
    bool leaves = false;                // some worker wants to leave
  };
  struct Outcome {
    bool seen = true;                  // this worker computed samples that count
    double loss = 0;                   // mean loss of this worker's samples
    std::vector<double> metrics = {};  // sums over this worker's samples
    std::optional<Counts> together;    // set if workers exchanged statistics in this step
    // Called after the step is committed. Synchronises independent workers when due and returns the
    // statistics accumulated since the last time.
    std::function<std::optional<Counts>()> meet = {};
    // Other measurements of the step; on worker 0.
    std::vector<std::pair<std::string, double>> measures = {};
    std::string stops_by = {};                 // reason of the strategy itself to end the fit
    std::optional<double> learning_rate = {};  // if different from the given one
    std::optional<GradientNoise> noise = {};   // if measured
  };
  // Forward, backward, and the resulting update. Where workers sum among themselves, a step that
  // throws has changed neither weights nor optimizer state nor running statistics. Where servers
  // update, some answers may have arrived; the servers hold the state.
  virtual Outcome step(const data::Batch& batch, const StepOptions& options) = 0;

  // Called after statistics are counted. For work between steps, such as comparing speeds.
  virtual void after_step(int64_t step);

  // True if the fit ends after the step just made. `wish`: this worker wants to stop.
  virtual bool stops(const Outcome& outcome, bool wish) const;
  // Runs a test with averaged weights (train/loop/swapped_averages.h) in place of the weights, on
  // each worker that has them. Collective for collective strategies.
  virtual void with_averages(const std::function<void()>& test);

  // Called before a checkpoint and at the end of the fit.
  struct Pause {
    bool regular = true;  // also made if the run continued
    bool ends = false;    // the fit is over
  };
  virtual void settle(int64_t step, const Pause& pause);
  // Called after the last step. Returns true if the weights have changed.
  virtual bool finish() { return false; }
  // State needed to continue, in addition to weights and optimizer state. Worker 0's is stored in
  // checkpoints; all workers keep theirs until the next strategy is created. Called between steps;
  // not collective.
  virtual StrategyState state() const { return {}; }
  // Called before the first step with the stored state, equal on all workers (except for
  // StrategyState::tensors); empty for a new run. A successor gets the state of its predecessor.
  virtual void restore(const StrategyState&) {}
  // The name of the state in checkpoints.
  std::string state_name() const;

  // The strategy for the following steps; null to keep this one.
  virtual std::unique_ptr<Strategy> successor() { return nullptr; }

  struct Traffic {
    double waited_seconds = 0;
    double wire_seconds = 0;  // exchanging, including time overlapped with computing
  };
  // Totals of this fit, including earlier strategies.
  virtual Traffic traffic() const { return {}; }
  // How workers combine their sums, for reports.
  virtual ExchangePath path() const { return {}; }

 protected:
  // Runs this worker's lanes. `observing`: see Stepper::Work. Weights may change once the last
  // bucket is ready.
  double compute(const data::Batch& batch, const StepOptions& options, comm::LaneRange observing,
                 const Stepper::Ready& ready);
  // Like `compute`, but adds up all sums of this worker, in no particular order. The returned
  // region stays valid until the next step.
  Memory compute_sums(const data::Batch& batch, const StepOptions& options,
                      comm::LaneRange observing);
  // True if this step measures the squares of each lane's gradient; see measure_noise.
  bool measures_noise() const { return !lane_noise_.empty(); }
  // Call before the update, when workers have the sum of all gradients. `squares` is the squared
  // norm of that sum before scaling by `scale`. Stores the result in `noise_` until the next step.
  // Collective.
  void measure_noise(int64_t batch, double squares, float scale);
  // Updates after the last bucket has arrived, so nothing changes if a bucket never arrives.
  // `total(b)` waits for the sum of bucket b. `scale` converts sums of gradients to the mean loss:
  // StepStatistics::gradient_scale, divided by the share of the batch that the sums cover.
  void update(const StepOptions& options, int64_t batch, double scale, int lanes,
              const std::function<Memory(int bucket)>& total);
  // The outcome of a step for the samples that the sums cover.
  static Outcome outcome_of(const StepStatistics& statistics);
  // The outcome of a step whose sums cover all workers.
  static Outcome outcome_together(const StepStatistics& statistics, const data::Batch& batch);

  FitView fit_;
  StrategyTraits traits_;
  bool adds_gradients_ = false;  // set by strategies that measure the noise of gradients
  std::optional<GradientNoise> noise_;

 private:
  std::vector<LaneNoise> lane_noise_;
};

// Null for a strategy that does not divide its state.
DividedStateTransfer* state_transfer_of(Strategy& strategy);

// Creates the strategy selected by the options. Collective.
std::unique_ptr<Strategy> make_strategy(const FitView& fit);

}  // namespace artel
