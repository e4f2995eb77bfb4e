// The training loop: model, data, batches, forward, loss, backward, update, until a criterion
// holds.
//
//   artel::Trainer digits(cluster, artel::nn::model_by_name("lenet5"),
//                         {.optimizer = artel::optim::sgd(0.1, {.momentum = 0.9})});
//   digits.fit(images, labels, {.batch_size = 64, .epochs = 5});
//   const double accuracy = digits.evaluate(samples).accuracy;
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
#include "artel/cluster/mesh.h"
#include "artel/comm/traffic.h"
#include "artel/data/augment.h"
#include "artel/data/dataset.h"
#include "artel/exec/choices.h"
#include "artel/exec/parameters.h"
#include "artel/nn/model.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/ps/report.h"
#include "artel/train/exchange_path.h"
#include "artel/train/gradient_noise.h"
#include "artel/train/strategy_options.h"
#include "artel/train/timeline.h"

namespace artel::data {
class FileDigests;
}

namespace artel {

struct TrainerOptions {
  optim::OptimizerConfig optimizer = optim::sgd(0.1);
  optim::ScheduleConfig schedule = {};
  LossChoice loss = "cross_entropy";  // by name, or a function
  std::vector<Metric> metrics = {};   // none: accuracy, of data with classes
  double label_smoothing = 0;
  std::vector<double> class_weights = {};  // of the training loss; see LabelOptions. Empty: all 1
  uint64_t seed = 0;
  int threads = 0;  // cores of this worker; 0: all that it was given
  int lanes =
      0;  // equal parts of the global batch; 0: one for each core of the cluster at the start
  bool tune = false;
  bool exact_convolutions = false;
  std::string precision = "fp32";  // of products: "fp32" or "bf16"; sums and weights are fp32
  size_t memory_limit = 0;         // bytes of activations of this worker; 0: no limit
  size_t worker_memory = 0;        // bytes of this worker; 0: what its machine has for each
  bool check_numbers = false;      // stop at the first op that gives NaN or infinity, naming it
  bool check_memory = false;       // stop at the first op that reads or writes what it may not
  std::vector<std::string> freeze = {};  // parameters whose names begin so are not trained
  // How workers train together (train/strategies/registry.h), and the options of that.
  std::string strategy = "auto";
  StrategyOptions strategy_options = {};
};

// A sample with a class that got another one as its answer.
struct Mistake {
  int64_t sample = 0;  // of the set that the network was tested on
  int64_t label = 0, answer = 0;
  double probability = 0;  // that the network gave the answer
  bool operator==(const Mistake&) const = default;
};

// What a callback sees after a step or an epoch.
struct TrainingState {
  int64_t epoch = 0, epochs = 0;  // the current epoch, from 1
  int64_t step = 0, steps = 0;    // finished, and planned for the whole run
  int64_t steps_per_epoch = 0;
  int64_t samples = 0;  // in this call of fit
  double loss = 0;      // of the step; after an epoch its mean
  double learning_rate = 0;
  double accuracy = 0;                      // that of `metrics`; 0 without it
  bool tested = false;                      // after an epoch with a validation set:
  double test_loss = 0, test_accuracy = 0;  // what it gave,
  bool averaged = false;                    // with averaged weights
  std::vector<MetricValue> metrics = {};    // on the training batches
  std::vector<MetricValue> test_metrics = {};
  // Of the gradient of the step, before it was clipped, if it was measured: in each step if it may
  // be clipped, and otherwise in every twentieth where workers add up whole gradients.
  std::optional<double> gradient_norm = {};
  std::optional<GradientNoise> noise = {};  // of the step, if it was measured
  // The mean variance beside the mean square, of all that was measured in this epoch; nothing if
  // nothing was in this step (after an epoch: in the epoch), or the square is not above 0.
  std::optional<double> noise_scale = {};
  std::vector<Mistake> test_mistakes = {};  // as many as FitOptions::mistakes asks for
  bool has_weights = true;  // after an epoch: this worker has all weights, not only a part of them
  double seconds = 0;       // since fit began
  double seconds_waited = 0;      // of these, waiting for data
  double seconds_exchanging = 0;  // and waiting for the sums of other workers
  double seconds_on_wire = 0;     // exchanging sums, most of it while computing
  // By this worker, to and from other workers and servers, as comm/traffic.h counts them.
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t own_samples = 0;     // of `samples`, those that this worker has computed
  int own_lanes = 0;           // of the batch, in the last step; 0: not known
  int lanes = 0;               // of the batch, of all workers; 0: it is not cut into lanes
  ExchangePath exchange = {};  // of the last step
  int workers = 1;             // that made the step
  MeshCoordinates mesh = {};   // of this worker
  // Of the first step after a change of the workers: how many went and came before it, the steps
  // that were repeated, and the seconds from when the step began that was broken off until this one
  // began, which include the silence of a worker before it was given up.
  int left = 0, joined = 0;
  int64_t repeated = 0;
  double seconds_lost = 0;
  // Other measurements of the step by the strategy; on worker 0.
  std::vector<std::pair<std::string, double>> measures = {};
};

// Returns false to stop training after the current step.
using Callback = std::function<bool(const TrainingState&)>;

// Called with the samples that are done, and all of them.
using TestProgress = std::function<void(int64_t done, int64_t samples)>;

// Some steps in detail.
struct StepTrace {
  int64_t first_step = 0, steps = 0;
  TimelineRecord timeline = {};
  std::string refused = {};  // why there is nothing to see; empty: there is
};

struct FitOptions {
  int64_t batch_size = 32;  // of all workers together
  // The last samples of an epoch, if they do not fill a batch, make a smaller one, whose gradient
  // is the mean over them; otherwise they are left out, different ones in each epoch.
  bool keep_last_batch = false;
  int64_t epochs = 1;
  int64_t steps = 0;  // stop after this many steps in all; 0: by epochs
  data::Augmentation augment = {};
  int loader_threads = 1;
  data::DatasetPtr validation = {};
  // Weights of a larger network that this one is a part of: they are saved with its own.
  NamedTensors around = {};
  // How many of its mistakes are kept, those that the network was most certain of.
  int64_t mistakes = 0;
  // Digests of the files that the data comes from, which workers compare; null: none.
  std::shared_ptr<data::FileDigests> files = {};
  // Other criteria to stop by; 0: unused.
  double target_accuracy = 0;  // on the validation set
  int64_t patience = 0;        // epochs without a better `best_by`
  double max_seconds = 0;
  // What makes an epoch the best so far: "loss" or the name of a metric, on the validation set or,
  // without one, on the training batches.
  std::string best_by = "loss";
  // Steps after which the noise of gradients is measured (train/gradient_noise.h); 0: never. Only
  // where workers add up the whole gradients of two or more lanes without loss.
  int64_t noise_every = 0;
  // Where checkpoints go, as worker 0 says; empty: nowhere. Saved at the end of each epoch, every
  // `save_every` steps if that is not 0, and when training stops. One that cannot be saved, or
  // whose weights are not finite, is a warning and leaves those before it as they are; `fit` throws
  // only if it is the last.
  std::filesystem::path checkpoints = {};
  int64_t save_every = 0;
  int keep_last = 3;
  // Machines that keep each checkpoint at that path, that of worker 0 among them. On the others,
  // one worker writes it from its own state, so nothing is sent. Only where each has all of the
  // state.
  int checkpoint_copies = 1;
  // Called there before the first checkpoint of a membership, with the folder of checkpoints.
  std::function<void(const std::filesystem::path& checkpoints)> before_copying = {};
  bool resume = false;  // continue from the newest good checkpoint in that folder, if there is one
  // Where each worker keeps only a part of the network: after each epoch and at the end all have
  // all weights, and at the end worker 0 has what the optimizer remembers. Otherwise only
  // checkpoints have all of it, and the weights are gathered only for tests.
  bool whole = true;
  bool timeline = false;  // record FitResult::timeline
  // Called once at worker 0, with the number of finished steps and the folder of checkpoints: when
  // all have agreed, hold the same state and are about to begin, and at whoever becomes worker 0
  // because those before it have ended.
  std::function<void(int64_t step, const std::filesystem::path& checkpoints)> before_leading = {};
  // Called at a worker that has been worker 0 and is so no longer: it leaves, or it had been given
  // up and has joined the others again.
  std::function<void()> after_leading = {};
  // Called at worker 0 before the first step of each membership.
  std::function<void(const Membership&)> before_membership = {};
  // Called at worker 0 before it saves a checkpoint, which fails if this throws.
  std::function<void()> before_save = {};
  TestProgress while_testing = {};  // of the validation set
  std::vector<Callback> after_step = {};
  std::vector<Callback> after_epoch = {};
  // Called at worker 0 after Trainer::request_trace.
  std::function<void(StepTrace)> after_trace = {};
};

// Workers that went or came while training went on.
struct ChangedWorkers {
  std::vector<MembershipChange::Gone> gone;
  std::vector<comm::control::Participant> came;
  std::vector<int> staying;    // numbers of those who went on
  int64_t step = 0;            // that was finished before
  double at = 0;               // seconds since fit began
  double seconds = 0;          // until they had found each other,
  double until_next_step = 0;  // and until they had finished the next step
  int64_t repeated = 0;        // steps that had to be made again before that
};

// An epoch that was better than all before it.
struct BestEpoch {
  std::string by;    // see FitOptions::best_by
  double value = 0;  // of that
  int64_t epoch = 0, step = 0;
};

// What a worker has exchanged with the others during a fit.
struct WorkerTraffic {
  int64_t worker = 0;           // its number in the run
  comm::Traffic all;            // with all workers and servers
  comm::Traffic between_hosts;  // with those on other hosts
};

struct FitResult {
  TrainingState last;
  std::optional<BestEpoch> best;  // nothing before the end of the first epoch
  ps::Report servers;             // what parameter servers have seen; on worker 0
  std::string stopped_by;         // "epochs", "steps", "target accuracy", "patience", "time",
                           // "callback", "request", "leave" (this worker has left, the others go
                           // on), or what a strategy says, such as "tolerance"
  // If some of several workers requested it: which ones ("worker 1 on n02"), and by which signal.
  std::string stopped_at;
  int stop_signal = 0;
  std::filesystem::path checkpoints;  // where worker 0 saves
  // Of the seconds that this worker waited for others, those for the wire: as many as the worker
  // that waited least. Nothing where that cannot be told.
  std::optional<double> seconds_for_wire;
  std::vector<TrainingState> epochs;
  // The averaged weights (OptimizerConfig::average) and the states of the network, on all workers;
  // none if weights are not averaged or FitOptions::whole is false.
  NamedTensors averaged;
  TimelineRecord timeline;  // on worker 0
  std::vector<ChangedWorkers> changes;
  // What a fast reduction has chosen its algorithms by; empty: nothing was measured.
  std::string links;
  // Of each worker that was there at the end, by rank; empty for one worker, or if each worker
  // ends by itself.
  std::vector<WorkerTraffic> traffic;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // that of `metrics`; 0 without it
  int64_t correct = 0;
  int64_t samples = 0;
  int64_t labels = 0;  // as many as samples, or one for each position of a text
  std::vector<MetricValue> metrics = {};
  std::vector<Mistake> mistakes = {};  // the most certain ones first
};

struct TrainerState;

class Trainer {
 public:
  Trainer(Cluster& cluster, Model model, TrainerOptions options = {});
  ~Trainer();

  FitResult fit(data::DatasetPtr train, const FitOptions& options);
  // Rows of x with their targets y: i32 classes or f32 values.
  FitResult fit(Tensor x, Tensor y, const FitOptions& options);
  // One step on a batch of your own, for loops that `fit` does not offer: rows of x (f32, or i32
  // tokens) with their targets y (i32 classes or f32 values). The same bits as `fit` on the same
  // batches. A collective call: each worker gives the whole global batch and computes its share of
  // it, and all begin with the state of worker 0 at the first call, after a `fit` or a `restore`,
  // and with rows of another type. The learning rate is that of the options if none is given.
  // These steps count like those of `fit`: a later `fit` continues from their number, and with its
  // data where it left off. Throws for schedules without a learning rate of their own, for
  // local steps (also those that "auto" has chosen) and for strategies with servers.
  TrainingState train_on_batch(const Tensor& x, const Tensor& y,
                               std::optional<double> learning_rate = {});
  // Of the weights that are trained, not of their averages. `progress` is told how many samples of
  // how many are done. Of samples with one class each, as many `mistakes` are kept; the same ones
  // on any number of workers.
  Evaluation evaluate(data::DatasetPtr test, const data::Augmentation& augment = {},
                      int64_t batch_size = 256, const TestProgress& progress = {},
                      int64_t mistakes = 0);
  // The network's output for rows of inputs; of a network with several, by name (nn::output).
  Tensor predict(const Tensor& x, std::string_view output = "prediction");
  // Before either of them, for a network that is larger than a worker: from now on each worker has
  // only some of its layers (train/forward_pipeline.h), and both are collective calls with the same
  // rows on all workers. It cannot be trained after that. Has no effect on one worker.
  void divide_for_predictions();
  bool divided_for_predictions() const;

  // Makes parameters for inputs of this type (of one sample) if there are none yet. fit, evaluate
  // and predict do so by themselves; weights can be loaded only afterwards.
  void build(const TensorType& sample);
  bool built() const;
  Parameters& parameters();
  // Names and shapes of the parameters, whose values may not have been made yet.
  const Parameters& layout() const;
  NamedTensors weights() const;
  // As in predict/load_weights.h.
  void load_weights(const NamedTensors& weights,
                    const std::function<bool(const std::string&)>& wanted = {});

  // How many lanes a global batch is cut into: of a run that is resumed, known once `fit` has read
  // its state. 0: the strategy works without lanes.
  int lanes() const;
  // Which kernel runs which shape, as far as that has been decided.
  const KernelChoices& choices() const;

  // The state of a run: weights, optimizer, step, sampler, kernel choices. What a lossy codec holds
  // back on each worker (cluster.compress) is gathered by `fit` alone: a run that goes on from a
  // checkpoint made after `train_on_batch` does without it, and says so.
  checkpoint::Checkpoint checkpoint() const;
  void restore(const checkpoint::Checkpoint& checkpoint);

  // Stops `fit` after the current step; safe in a signal handler, whose `signal` all workers learn,
  // and from any thread.
  void request_stop(int signal = 0);
  // The same for this worker alone: it hands its lanes over to the others. Stops `fit` if there are
  // none, or where workers cannot meet again (Cluster::elastic).
  void request_leave();
  // At worker 0, from any thread: as soon as all workers know of it, with the sums of a step, each
  // records this many steps, and FitOptions::after_trace gets them. No bit changes.
  void request_trace(int64_t steps);

 private:
  struct Given;
  std::unique_ptr<TrainerState> state_;
  std::unique_ptr<Given> given_;  // while batches are given
};

}  // namespace artel
