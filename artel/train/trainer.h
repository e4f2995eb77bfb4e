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
#include "artel/data/dataset.h"
#include "artel/data/images/augment.h"
#include "artel/exec/parameters.h"
#include "artel/exec/plan/choices.h"
#include "artel/nn/model.h"
#include "artel/optim/config.h"
#include "artel/optim/schedule.h"
#include "artel/ps/report.h"
#include "artel/train/loop/gradient_noise.h"
#include "artel/train/loop/timeline.h"
#include "artel/train/step/exchange_path.h"
#include "artel/train/step/pruning.h"
#include "artel/train/strategy_options.h"

namespace artel::data {
class FileDigests;
}

namespace artel {

class Teacher;

struct TrainerOptions {
  optim::OptimizerConfig optimizer = optim::sgd(0.1);
  optim::ScheduleConfig schedule = {};
  LossChoice loss = "cross_entropy";  // by name, or a function
  std::vector<Metric> metrics = {};   // empty: accuracy, for data with classes
  double label_smoothing = 0;
  std::vector<double> class_weights = {};  // of the training loss; see LabelOptions; empty: all 1
  uint64_t seed = 0;
  int threads = 0;              // of this worker; 0: all available cores
  std::string device = "cpu";   // where this worker computes (exec/devices.h)
  double device_timeout = 300;  // seconds after which the device counts as hung
  int lanes = 0;                // equal parts of the global batch; 0: see train/lane_count.h
  bool tune = false;
  bool exact_convolutions = false;
  std::string precision = "fp32";  // of products: "fp32" or "bf16"; sums and weights are fp32
  size_t memory_limit = 0;     // bytes of this worker's activations, or in a pipeline of a lane's
                               // in the whole network; 0: no limit
  size_t worker_memory = 0;    // bytes of this worker; 0: its share of the machine
  size_t bucket_bytes = 0;     // of gradients exchanged together; 0: by the measured links
  bool check_numbers = false;  // stop at the first op that produces NaN or infinity, naming it
  bool check_memory = false;   // stop at the first op that accesses memory outside its values
  std::vector<std::string> freeze = {};  // name prefixes of parameters that are not trained
  // The strategy (train/strategies/registry.h) and its options.
  std::string strategy = "auto";
  StrategyOptions strategy_options = {};
  std::shared_ptr<Teacher> teacher = {};  // whose outputs are learnt, too; null: none
  PruningOptions pruning = {};            // weights that are or become zero
};

// A misclassified sample.
struct Mistake {
  int64_t sample = 0;  // index in the tested set
  int64_t label = 0, answer = 0;
  double probability = 0;  // the network's probability of the answer
  bool operator==(const Mistake&) const = default;
};

// The state passed to callbacks after a step or an epoch.
struct TrainingState {
  int64_t epoch = 0, epochs = 0;  // the current epoch, from 1
  int64_t step = 0, steps = 0;    // finished, and planned for the whole run
  int64_t steps_per_epoch = 0;
  int64_t samples = 0;  // in this call of fit
  double loss = 0;      // of the step; after an epoch its mean
  double learning_rate = 0;
  double accuracy = 0;                      // that of `metrics`; 0 without it
  bool tested = false;                      // after an epoch with a validation set
  double test_loss = 0, test_accuracy = 0;  // results of that test
  bool averaged = false;                    // the test used averaged weights
  std::vector<MetricValue> metrics = {};    // on the training batches
  std::vector<MetricValue> test_metrics = {};
  // Norm of the step's gradient before clipping, if measured: in each step if gradients may be
  // clipped, otherwise in every twentieth if workers add up whole gradients.
  std::optional<double> gradient_norm = {};
  std::optional<GradientNoise> noise = {};  // of the step, if measured
  // Gradient noise scale: mean variance / mean square over all measurements of this epoch. Empty if
  // nothing was measured in this step (after an epoch: in the epoch), or if the square is not above
  // 0.
  std::optional<double> noise_scale = {};
  std::vector<Mistake> test_mistakes = {};  // at most FitOptions::mistakes
  bool has_weights = true;        // after an epoch: this worker has all weights, not only a part
  double seconds = 0;             // since fit began
  double seconds_waited = 0;      // part of `seconds`: waiting for data
  double seconds_exchanging = 0;  // part of `seconds`: waiting for sums of other workers
  double seconds_on_wire = 0;     // exchanging sums, mostly while computing
  // Exchanged by this worker with other workers and servers, as counted by comm/traffic.h.
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t own_samples = 0;  // of `samples`, computed by this worker
  std::string device = {};  // of this worker; empty for the CPU
  DeviceUse device_use = {};
  int own_lanes = 0;           // lanes of this worker in the last step; 0: unknown
  int lanes = 0;               // lanes of all workers; 0: without lanes
  ExchangePath exchange = {};  // of the last step
  int workers = 1;             // in this step
  MeshCoordinates mesh = {};   // of this worker
  // Set in the first step after a membership change: the numbers of workers that left and joined,
  // of repeated steps, and of lost seconds. Lost time runs from the start of the first interrupted
  // step to the start of this one, including the silence of a worker before it was given up.
  int left = 0, joined = 0;
  int64_t repeated = 0;
  double seconds_lost = 0;
  // Ends of epochs: their number in this call of fit, and their time for tests and checkpoints.
  int64_t ended_epochs = 0;
  double seconds_between_epochs = 0;
  double forecast_seconds = 0;  // of a step, by the speeds of `artel plan --measure`; 0: unknown
  // Other measurements of the step by the strategy. On worker 0 only.
  std::vector<std::pair<std::string, double>> measures = {};
};

// Returns false to stop training after the current step.
using Callback = std::function<bool(const TrainingState&)>;

// Called with the number of finished samples and of all samples.
using TestProgress = std::function<void(int64_t done, int64_t samples)>;

// A detailed trace of some steps.
struct StepTrace {
  int64_t first_step = 0, steps = 0;
  TimelineRecord timeline = {};
  std::string refused = {};  // reason for having no trace; empty if there is one
};

struct FitOptions {
  int64_t batch_size = 32;  // global batch
  // If the last samples of an epoch do not fill a batch, they form a smaller one, whose gradient is
  // their mean. Otherwise they are skipped, different ones in each epoch.
  bool keep_last_batch = false;
  int64_t epochs = 1;
  int64_t steps = 0;  // stop after this many steps in total; 0: stop by epochs
  data::Augmentation augment = {};
  int loader_threads = 1;
  data::DatasetPtr validation = {};
  // Weights of a larger network that contains this one. Saved with its own weights.
  NamedTensors enclosing_weights = {};
  // Number of mistakes to keep, most certain first.
  int64_t mistakes = 0;
  // Digests of the data's files, compared between workers; null for none.
  std::shared_ptr<data::FileDigests> files = {};
  // Other names and values that must be equal on all workers.
  std::vector<std::pair<std::string, std::string>> facts = {};
  // Other stopping criteria; 0 disables.
  double target_accuracy = 0;  // on the validation set
  int64_t patience = 0;        // epochs without improvement of `best_by`
  double max_seconds = 0;
  // The criterion for the best epoch: "loss" or the name of a metric, on the validation set or,
  // without one, on the training batches.
  std::string best_by = "loss";
  // Steps between measurements of the gradient noise (train/loop/gradient_noise.h); 0 disables.
  // Only for strategies that add up the whole gradients of two or more lanes without loss.
  int64_t noise_every = 0;
  // Folder of checkpoints, as on worker 0; empty for none. Checkpoints are saved at the end of each
  // epoch, every `save_every` steps if that is not 0, and when training stops. If one cannot be
  // saved, or its weights are not finite, a warning is logged and earlier ones are kept; `fit`
  // throws only if it is the last one.
  std::filesystem::path checkpoints = {};
  // Identifies the run that these checkpoints belong to, as on worker 0. All workers learn it.
  std::string identity = {};
  int64_t save_every = 0;
  int keep_last = 3;
  // Number of machines that keep each checkpoint at that path, including worker 0's. On the others,
  // one worker writes it from its own state, so nothing is sent. Only if each worker has the whole
  // state.
  int checkpoint_copies = 1;
  // Called on these machines before the first checkpoint of a membership, with the folder of
  // checkpoints and the run's identity. Returns false if this machine cannot keep a copy there.
  std::function<bool(const std::filesystem::path& checkpoints, const std::string& identity)>
      before_copying = {};
  bool resume = false;  // continue from the newest valid checkpoint in that folder, if any
  // For workers that keep only a part of the network. If true, all get all weights after each epoch
  // and at the end, and worker 0 also gets the optimizer state at the end. If false, only
  // checkpoints are complete, and weights are gathered only for tests.
  bool gather_network = true;
  bool timeline = false;  // record FitResult::timeline
  // Called once on worker 0, with the number of finished steps, the folder of checkpoints, and the
  // run's identity, when all workers have agreed, hold the same state, and are about to begin. Also
  // called on a worker that becomes worker 0 later.
  std::function<void(int64_t step, const std::filesystem::path& checkpoints,
                     const std::string& identity)>
      before_leading = {};
  // Called on a worker that is no longer worker 0, because it leaves or because it rejoined after
  // having been given up.
  std::function<void()> after_leading = {};
  // Called on worker 0 before the first step of each membership.
  std::function<void(const Membership&)> before_membership = {};
  // Called on worker 0 before it saves a checkpoint. If this throws, saving fails.
  std::function<void()> before_save = {};
  TestProgress while_testing = {};  // of the validation set
  std::vector<Callback> after_step = {};
  std::vector<Callback> after_epoch = {};
  // Called on the other workers before the first step of each membership, with worker 0's folder of
  // checkpoints.
  std::function<void(const std::filesystem::path& checkpoints)> before_following = {};
  // Called after Trainer::request_trace: on worker 0, and on all workers if another one was asked.
  std::function<void(StepTrace)> after_trace = {};
};

// Worker 0 died before the others had received the initial state. The remaining workers have formed
// a group and can start again.
class NotBegun : public Error {
 public:
  using Error::Error;
};

// A change of the workers during training.
struct ChangedWorkers {
  std::vector<MembershipChange::Gone> gone;
  std::vector<comm::control::Participant> came;
  std::vector<int> staying;    // numbers of the workers that continued
  int64_t step = 0;            // last finished step before the change
  double at = 0;               // seconds since fit began
  double seconds = 0;          // until they had formed a group
  double until_next_step = 0;  // until they had finished the next step
  int64_t repeated = 0;        // steps repeated before that
};

// An epoch that was better than all earlier ones.
struct BestEpoch {
  std::string by;    // see FitOptions::best_by
  double value = 0;  // of that criterion
  int64_t epoch = 0, step = 0;
};

// Data exchanged by a worker during a fit.
struct WorkerTraffic {
  int64_t worker = 0;           // its number in the run
  comm::Traffic all;            // with all workers and servers
  comm::Traffic between_hosts;  // with those on other hosts
};

struct FitResult {
  TrainingState last;
  std::optional<BestEpoch> best;  // empty before the end of the first epoch
  ps::Report servers;             // statistics of parameter servers; on worker 0
  std::string stopped_by;         // "epochs", "steps", "target accuracy", "patience", "time",
                           // "callback", "request", "leave" (this worker has left, the others
                           // continue), or a strategy's own reason, such as "tolerance"
  // The names of the workers that requested the stop ("worker 1 on n02"), and the signal. Empty if
  // all workers or none requested it.
  std::string stopped_at;
  int stop_signal = 0;
  std::filesystem::path checkpoints;  // worker 0's folder
  // The part of the waiting time that the wire needs: the waiting time of the worker that waited
  // least. Empty if it cannot be determined.
  std::optional<double> seconds_for_wire;
  std::vector<TrainingState> epochs;
  // The averaged weights (OptimizerConfig::average) and the network's states, on all workers. Empty
  // if weights are not averaged or FitOptions::gather_network is false.
  NamedTensors averaged;
  TimelineRecord timeline;  // on worker 0
  std::vector<ChangedWorkers> changes;
  // Measurements by which a fast reduction has chosen its algorithms; empty if nothing was
  // measured.
  std::string links;
  // Traffic of each worker present at the end, by rank. Empty for one worker, or if each worker
  // ends by itself.
  std::vector<WorkerTraffic> traffic;
};

struct Evaluation {
  double loss = 0;
  double accuracy = 0;  // that of `metrics`; 0 without it
  int64_t correct = 0;
  int64_t samples = 0;
  int64_t labels = 0;  // one per sample, or one per position of a text
  std::vector<MetricValue> metrics = {};
  std::vector<Mistake> mistakes = {};  // most certain first
};

struct TrainerState;

class Trainer {
 public:
  Trainer(Cluster& cluster, Model model, TrainerOptions options = {});
  ~Trainer();

  FitResult fit(data::DatasetPtr train, const FitOptions& options);
  // Trains on rows of x with their targets y: i32 classes or f32 values.
  FitResult fit(Tensor x, Tensor y, const FitOptions& options);
  // One step on a batch from the caller: rows of x (f32, or i32 tokens) with their targets y (i32
  // classes or f32 values). Gives the same bits as `fit` on the same batches. Collective: each
  // worker passes the whole global batch and computes its share. All begin with the state of worker
  // 0 at the first call, after a `fit` or a `restore`, and with rows of another type. Without a
  // learning rate, uses that of the options. These steps count like those of `fit`: a later `fit`
  // continues with the next step number, and with its data where it stopped. Throws for schedules
  // without a learning rate of their own, for local steps (also if chosen by "auto"), and for
  // strategies with servers.
  TrainingState train_on_batch(const Tensor& x, const Tensor& y,
                               std::optional<double> learning_rate = {});
  // Evaluates the trained weights, not their averages. Keeps up to `mistakes` mistakes of samples
  // with one class each; the same ones on any number of workers.
  Evaluation evaluate(data::DatasetPtr test, const data::Augmentation& augment = {},
                      int64_t batch_size = 256, const TestProgress& progress = {},
                      int64_t mistakes = 0);
  // The network's output for rows of inputs. Outputs of a network with several are chosen by name
  // (nn::output).
  Tensor predict(const Tensor& x, std::string_view output = "prediction");
  // For networks larger than a worker: call before `evaluate` or `predict`. Each worker then has
  // only some of the layers (train/parts/forward_pipeline.h), and both are collective calls with
  // the same rows on all workers. The network cannot be trained afterwards. No effect with one
  // worker.
  void divide_for_predictions();
  bool divided_for_predictions() const;

  // Creates the parameters for samples of this type, unless they exist. fit, evaluate, and predict
  // do so themselves; weights can be loaded only afterwards.
  void build(const TensorType& sample);
  bool built() const;
  Parameters& parameters();
  // Names and shapes of the parameters, whose values may not exist yet.
  const Parameters& layout() const;
  NamedTensors weights() const;
  // Loads weights as in predict/load_weights.h.
  void load_weights(const NamedTensors& weights,
                    const std::function<bool(const std::string&)>& wanted = {});
  // Like load_weights. In addition, `evaluate` and `predict` compute with quantised matrices
  // (tensor/quantised.h) directly, until other weights are loaded or the network is trained. Not
  // with shards or divided networks, which compute with expanded matrices.
  void load_for_inference(const NamedTensors& weights);

  // The number of lanes of a global batch, once `fit` has begun. 0 before, and for strategies
  // without lanes.
  int lanes() const;
  // The kernels chosen so far for each shape.
  const KernelChoices& choices() const;

  // The state of a run: weights, optimizer, step, sampler, kernel choices. Only `fit` gathers the
  // residuals of a lossy codec on each worker (cluster.compress). A run that continues from a
  // checkpoint made after `train_on_batch` starts without them and logs that.
  checkpoint::Checkpoint checkpoint() const;
  void restore(const checkpoint::Checkpoint& checkpoint);

  // Stops `fit` after the current step. Safe in a signal handler, whose `signal` is sent to all
  // workers, and from any thread.
  void request_stop(int signal = 0);
  // Like request_stop, but for this worker only: it hands its lanes over to the others. Stops `fit`
  // if it is the only worker, or if workers cannot regroup (Cluster::elastic).
  void request_leave();
  // Requests a trace of this many steps, from any thread. The request travels with the sums of a
  // step; then all workers record, and FitOptions::after_trace gets the result. No bits change.
  void request_trace(int64_t steps);

 private:
  struct BatchLoop;
  std::unique_ptr<TrainerState> state_;
  std::unique_ptr<BatchLoop> batch_loop_;  // while batches are given
};

}  // namespace artel
