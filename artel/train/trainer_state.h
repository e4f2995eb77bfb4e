// What a Trainer holds between calls. Internal to train.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "artel/data/loader.h"
#include "artel/predict/evaluator.h"
#include "artel/train/first_values.h"
#include "artel/train/forward_pipeline.h"
#include "artel/train/stepper.h"
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
  Loss loss;       // the one that is minimised
  Loss test_loss;  // the same without label smoothing
  KernelChoices choices;
  int threads, lanes, shards;
  TensorType sample;
  Parameters parameters;  // their values are there once `first_values` has nothing pending
  FirstValues first_values;
  bool built = false;
  std::unique_ptr<Stepper> stepper;
  std::unique_ptr<ForwardPipeline> stages;  // if it only predicts, and each worker has a part
  std::unique_ptr<Evaluator> predictor;     // made at the first prediction
  TensorType stepper_target;
  int64_t stepper_generation = -1;  // of the membership whose memory its sums lie in
  NamedTensors pending_optimizer;   // for the next stepper, while there is none
  StrategyStates kept;              // without the tensors of the strategy at work
  Strategy* strategy = nullptr;     // at work, with a state of its own
  int64_t step = 0;                 // the last finished one, which everything here reflects
  int64_t extra_updates = 0;        // of the optimizer, beyond one in each step
  int64_t generation = -1;          // of the membership that it was finished in
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
  std::vector<std::string> counted;  // what the sums of metrics are of: "accuracy [2]"
  bool in_parts = false;             // a fit has left the state in parts, and only saved it
  bool alone = false;                // this worker runs apart from the others: no collective calls
  bool in_step = false;              // all workers hold the same after each step
  bool newcomers = false;            // others are to be let in after this step; of worker 0
  std::atomic<bool> stop{false};
  std::atomic<int> stop_signal{0};  // that has requested it; 0: none
  std::atomic<bool> leave{false};   // this worker hands over to the others
  std::atomic<int64_t> trace{0};    // so many steps are to be traced; of worker 0
  // Waits for whoever reads what is here, such as a checkpoint that is being written; to be called
  // before weights or optimizer state change, from any thread. Absent: nobody does.
  std::function<void()> before_change;

  TrainerState(Cluster& cluster, Model model, TrainerOptions given);

  bool trained(const std::string& name) const;
  void build(const TensorType& type);
  // As for artel::load_weights.
  void load_weights(const NamedTensors& weights,
                    const std::function<bool(const std::string&)>& wanted = {});
  // Makes sure that all parameters, and what the optimizer remembers, have their values. Throws if
  // this worker has only a part of them.
  void fill();
  // Those asked for or, if there are none, the accuracy of samples with classes.
  std::vector<Metric> metrics_for(const data::SampleLayout& layout) const;
  // For samples and targets of this layout. One made for others hands its optimizer state over.
  Stepper& stepper_for(const data::SampleLayout& layout);

  // Those that are kept, with the present state of the strategy at work.
  StrategyStates strategy_states() const;
  // From here on this strategy, which has what was kept for it, is at work; null: none. The state
  // of the one before is kept.
  void set_strategy(Strategy* next);

  // All of the state as it is now. The tensors are read when it is written: until then nothing here
  // may change.
  checkpoint::Snapshot snapshot() const;
  checkpoint::Checkpoint checkpoint() const;
  void restore(checkpoint::Checkpoint saved);

  // All that is not tensors, as JSON. Restoring drops what was compiled for other lanes or choices.
  std::string state_text() const { return state_text(strategy_states()); }
  void restore_state(const std::string& text);

 private:
  std::string state_text(const StrategyStates& strategies) const;
  void add_missing_averages(checkpoint::Checkpoint& saved) const;
  // Drops the stepper, but not what the optimizer remembers.
  void drop_stepper();
};

}  // namespace artel
