// What a Trainer holds between calls. Internal to train.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "artel/data/loader.h"
#include "artel/predict/evaluator.h"
#include "artel/train/economy.h"
#include "artel/train/exchange.h"
#include "artel/train/own_state.h"
#include "artel/train/stepper.h"
#include "artel/train/trainer.h"

namespace artel {

TensorType input_type(const data::SampleLayout& layout);
// Throws for data without targets.
TensorType target_type(const data::SampleLayout& layout);

// How sums meet in a run without servers. What local steps exchange is packed by themselves.
ExchangeOptions exchange_options(const TrainerOptions& options);

struct TrainerState {
  Cluster& cluster;
  Model model;
  TrainerOptions options;
  Loss loss;       // that is trained
  Loss test_loss;  // the same without label smoothing
  KernelChoices choices;
  int threads, lanes;
  TensorType sample;
  Parameters parameters;
  bool built = false;
  std::unique_ptr<Stepper> stepper;
  std::unique_ptr<Evaluator> predictor;  // once something was predicted
  TensorType stepper_target;
  NamedTensors pending_optimizer;  // restored before there was a stepper
  // Of the outer update of local steps, laid out like the parameters; empty without one.
  Parameters outer_velocity;
  Economy economy;  // that "auto" has chosen
  // Of all workers, at worker 0: what they need to go on with the same bits where exchanges are
  // lossy, and what it is good for (strategies/own_keeper.h).
  std::vector<OwnState> own_states;
  std::string own_purpose;
  int64_t step = 0;
  data::LoaderState position;
  optim::PlateauState plateau;
  double best_loss = 0;
  int64_t bad_epochs = 0;
  bool has_best = false;
  struct {
    double loss = 0;
    int64_t correct = 0, labels = 0, samples = 0;
  } epoch;             // sums over the steps of the current epoch
  bool alone = false;  // this worker runs apart from the others: no collective calls
  std::atomic<bool> stop{false};

  TrainerState(Cluster& cluster, Model model, TrainerOptions given);

  bool trained(const std::string& name) const;
  void build(const TensorType& type);
  // For samples and targets of this layout.
  Stepper& stepper_for(const data::SampleLayout& layout);

  checkpoint::Checkpoint checkpoint() const;
  void restore(const checkpoint::Checkpoint& saved);

  // All that is not tensors, as JSON.
  std::string state_text() const;
  void restore_state(const std::string& text);
};

}  // namespace artel
