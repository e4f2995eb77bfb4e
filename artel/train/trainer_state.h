// A Trainer's data between calls. Internal to train.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "artel/data/loader.h"
#include "artel/predict/evaluator.h"
#include "artel/predict/quantised_weights.h"
#include "artel/train/parts/first_values.h"
#include "artel/train/parts/forward_pipeline.h"
#include "artel/train/step/stepper.h"
#include "artel/train/strategy_state.h"
#include "artel/train/trainer.h"

namespace artel {

class Strategy;

TensorType input_type(const data::SampleLayout& layout);
// Throws for data without targets.
TensorType target_type(const data::SampleLayout& layout);

struct TrainerState {
  Cluster& cluster;
  Model model;
  TrainerOptions options;
  Loss loss;       // minimised
  Loss test_loss;  // without label smoothing
  KernelChoices choices;
  int threads, shards;
  int lanes = 0;  // 0 until chosen
  TensorType sample;
  Parameters parameters;  // values exist once `first_values` has nothing pending
  FirstValues first_values;
  bool built = false;
  std::unique_ptr<Stepper> stepper;
  std::unique_ptr<ForwardPipeline> stages;  // for divided predictions
  // For `evaluate` and `predict`; null: they use `parameters`.
  std::unique_ptr<QuantisedWeights> quantised;
  std::unique_ptr<Evaluator> predictor;  // created at the first prediction
  TensorType stepper_target;
  int64_t stepper_generation = -1;  // of the membership that owns the memory of its sums
  NamedTensors pending_optimizer;   // for the next stepper, until it exists
  StrategyStates kept;              // without the tensors of the current strategy
  Strategy* strategy = nullptr;     // the current strategy, if it has a state
  int64_t step = 0;                 // the last finished step, reflected by everything here
  int64_t extra_updates = 0;        // optimizer updates beyond one per step
  int64_t generation = -1;          // of the membership that finished the step
  data::LoaderState position;
  optim::PlateauState plateau;
  std::optional<BestEpoch> best;
  int64_t bad_epochs = 0;  // since then
  struct {
    double loss = 0;
    int64_t samples = 0;
    double weight = 0;  // of the samples in the loss
    std::vector<double> metrics = {};
    GradientNoise noise = {};
  } epoch;                           // sums over the steps of the current epoch
  std::vector<std::string> counted;  // metrics whose sums are stored: "accuracy [2]"
  bool in_parts = false;             // a fit has left the state in parts and only saved it
  bool alone = false;                // this worker runs apart: no collective calls
  bool in_step = false;              // all workers hold the same after each step
  std::atomic<bool> stop{false};
  std::atomic<int> stop_signal{0};  // signal that requested the stop; 0 if none
  std::atomic<bool> leave{false};   // this worker hands over to the others
  std::atomic<int64_t> trace{0};    // steps to trace, requested here

  TrainerState(Cluster& cluster, Model model, TrainerOptions given);

  bool trained(const std::string& name) const;
  void build(const TensorType& type);
  // Sets the lanes of a run that begins with batches of this size. A resumed run keeps its own.
  // Call after `build`.
  void choose_lanes(int64_t batch);
  // Like artel::load_weights.
  void load_weights(const NamedTensors& weights,
                    const std::function<bool(const std::string&)>& wanted = {});
  // Drops the quantised matrices, because the parameters are going to change.
  void drop_quantised();
  // An evaluator of the current weights, quantised or not; without `y`, for predictions.
  std::unique_ptr<Evaluator> new_evaluator(std::optional<TensorType> y,
                                           std::vector<Metric> metrics);
  // Ensures that all parameters and optimizer states have their values. Throws if this worker has
  // only a part of them.
  void fill();
  // The configured metrics or, if none, the accuracy of samples with classes.
  std::vector<Metric> metrics_for(const data::SampleLayout& layout) const;
  // The parameters whose zeros are preserved (TrainerOptions::pruning).
  std::vector<std::string> kept_zeros() const;
  // Sets the weights that are due to zero. All workers, which hold the same weights, call it after
  // a step. `steps`: the length of the run.
  void prune(int64_t steps);
  // Returns a stepper for this layout of samples and targets. An existing one for another layout
  // hands over its optimizer state.
  Stepper& stepper_for(const data::SampleLayout& layout);

  // All stored states, with the present state of the current strategy.
  StrategyStates strategy_states() const;
  // Makes this strategy, which has received its stored state, the current one; null for none.
  // Stores the state of the previous one.
  void set_strategy(Strategy* next);

  // A snapshot of the whole state. Tensors are read when it is written; nothing may change until
  // then.
  checkpoint::Snapshot snapshot() const;
  checkpoint::Checkpoint checkpoint() const;
  void restore(checkpoint::Checkpoint saved);

  // The state without tensors, as JSON. Restoring drops programs compiled for other lanes or
  // choices.
  std::string state_text() const { return state_text(strategy_states()); }
  void restore_state(const std::string& text);

 private:
  // The teacher's outputs join the loss. Throws for options that do not go with them.
  void learn_from_teacher();
  std::string state_text(const StrategyStates& strategies) const;
  void add_missing_averages(checkpoint::Checkpoint& saved) const;
  // Drops the stepper and keeps the optimizer state.
  void drop_stepper();
};

}  // namespace artel
