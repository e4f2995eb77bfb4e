// The training loop: model, data, batches, forward, loss, backward, update, until a criterion
// holds.
//
// A Trainer owns the parameters and the optimizer's state. Everything random is a function of the
// seed, the step and the sample, so two runs with equal options give the same bits; a run that is
// resumed from a checkpoint gives the bits of one that was never stopped. Calls come from one
// thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/checkpoint/checkpoint.h"
#include "artel/cluster/cluster.h"
#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/ps/report.h"
#include "artel/train/timeline.h"

namespace artel {

struct TrainerOptions {
  optim::OptimizerConfig optimizer = optim::sgd(0.1);
  optim::ScheduleConfig schedule = {};
  std::string loss = "cross_entropy";
  double label_smoothing = 0;
  uint64_t seed = 0;
  int threads = 0;  // cores of this worker; 0: all that it was given
  int lanes =
      0;  // equal parts of the global batch; 0: one for each core of the cluster at the start
  bool tune = false;
  bool exact_convolutions = false;
  std::string precision = "fp32";  // of products: "fp32" or "bf16"; sums and weights are fp32
  size_t memory_limit = 0;         // bytes of activations of one lane; 0: no limit
  bool check_numbers = false;      // stop at the first op that gives NaN or infinity, naming it
  bool check_memory = false;       // stop at the first op that reads or writes what it may not
  std::vector<std::string> freeze = {};  // parameters whose names begin so are not trained
  // How the gradients of several workers meet (train/exchange.h).
  std::string strategy = "auto";
  std::string reduction = "exact";
  std::string compress = {};
  int coordinators = 1;
  // Steps between averages of the workers' weights (train/averaging.h); 1: none are needed.
  int64_t local_steps = 1;
  double outer_momentum = 0;
  double outer_learning_rate = 1;
  // With parameter servers (Cluster::servers), for the strategies "ps" and "downpour".
  std::optional<int64_t> delay = 0;         // nothing: no limit
  int64_t push_every = 1, fetch_every = 1;  // steps of "downpour"
  int64_t synchronous_epochs = 1;           // that "downpour" begins with
  bool allow_lossy = false;  // "auto" may choose local steps and compression by itself
};

// What a callback sees after a step or an epoch.
struct TrainingState {
  int64_t epoch = 0, epochs = 0;  // the current epoch, from 1
  int64_t step = 0, steps = 0;    // the number of finished steps
  int64_t samples = 0;            // in this call of fit
  double loss = 0;                // of the step; after an epoch its mean
  double learning_rate = 0;
  double accuracy = 0;                      // on the training batches, for class targets
  bool tested = false;                      // after an epoch with a validation set:
  double test_loss = 0, test_accuracy = 0;  // what it gave
  double seconds = 0;                       // since fit began
  double seconds_waited = 0;                // of these, waiting for data
  double seconds_exchanging = 0;            // and waiting for the sums of other workers
  int64_t sent_bytes = 0;                   // to other workers, by this one
};

// Returns false to stop training after the current step.
using Callback = std::function<bool(const TrainingState&)>;

struct FitOptions {
  int64_t batch_size = 32;  // of all workers together
  // The samples of an epoch that do not fill a batch make a smaller one, whose gradient is the mean
  // over them; otherwise each epoch leaves other ones out.
  bool keep_last_batch = false;
  int64_t epochs = 1;
  int64_t steps = 0;  // stop after so many steps in all; 0: by epochs
  data::Augmentation augment = {};
  int loader_threads = 1;
  data::DatasetPtr validation = {};
  // Other criteria to stop by; 0: unused.
  double target_accuracy = 0;  // on the validation set
  int64_t patience = 0;        // epochs without a better validation loss
  double max_seconds = 0;
  // Where checkpoints go; empty: nowhere. Saved at the end of each epoch, every `save_every` steps
  // if that is not 0, and when training stops.
  std::filesystem::path checkpoints = {};
  int64_t save_every = 0;
  int keep_last = 3;
  bool resume = false;  // continue from the newest good checkpoint in that folder, if there is one
  bool timeline = false;  // record FitResult::timeline
  std::vector<Callback> after_step = {};
  std::vector<Callback> after_epoch = {};
};

struct FitResult {
  TrainingState last;
  ps::Report servers;      // what parameter servers have seen; at worker 0
  std::string stopped_by;  // "epochs", "steps", "target accuracy", "patience", "time", "callback"
  std::vector<TrainingState> epochs;
  std::vector<TimelineSpan> timeline;  // of all workers, at worker 0
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // of class targets; else 0
  int64_t correct = 0;
  int64_t samples = 0;
  int64_t labels = 0;  // as many as samples, or one for each position of a text
};

struct TrainerState;

class Trainer {
 public:
  Trainer(Cluster& cluster, Model model, TrainerOptions options = {});
  ~Trainer();

  FitResult fit(data::DatasetPtr train, const FitOptions& options);
  // Rows of x with their targets y: i32 classes or f32 values.
  FitResult fit(Tensor x, Tensor y, const FitOptions& options);
  Evaluation evaluate(data::DatasetPtr test, const data::Augmentation& augment = {},
                      int64_t batch_size = 256);
  // The network's output for rows of inputs.
  Tensor predict(const Tensor& x);

  // Makes parameters for inputs of this type (of one sample) if there are none yet. fit, evaluate
  // and predict do so by themselves; weights can be loaded only afterwards.
  void build(const TensorType& sample);
  bool built() const;
  Parameters& parameters();
  NamedTensors weights() const;
  // As in predict/load_weights.h.
  void load_weights(const NamedTensors& weights,
                    const std::function<bool(const std::string&)>& wanted = {});

  // Which kernel runs which shape, as far as that has been decided.
  const KernelChoices& choices() const;

  // The state of a run: weights, optimizer, step, sampler, kernel choices.
  checkpoint::Checkpoint checkpoint() const;
  void restore(const checkpoint::Checkpoint& checkpoint);

  // Stops `fit` after the current step; safe in a signal handler and from any thread.
  void request_stop();

 private:
  std::unique_ptr<TrainerState> state_;
};

}  // namespace artel
