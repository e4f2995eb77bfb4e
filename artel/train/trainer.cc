#include "artel/train/trainer.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/time.h"
#include "artel/checkpoint/weights.h"
#include "artel/data/loader.h"
#include "artel/train/batches.h"
#include "artel/train/evaluator.h"
#include "artel/train/stepper.h"

namespace artel {
namespace {

using Json = nlohmann::json;

TensorType input_type(const data::SampleLayout& layout) {
  return {layout.input_type, layout.input};
}

TensorType target_type(const data::SampleLayout& layout) {
  require(layout.target_kind != data::TargetKind::none, ErrorKind::invalid_argument,
          "the data set has no targets to learn from");
  return {layout.target_type(), layout.target};
}

}  // namespace

struct Trainer::State {
  Cluster& cluster;
  Model model;
  TrainerOptions options;
  Loss loss;
  KernelChoices choices;
  int threads, lanes;
  TensorType sample;
  Parameters parameters;
  bool built = false;
  std::unique_ptr<Stepper> stepper;
  TensorType stepper_target;
  NamedTensors pending_optimizer;  // restored before there was a stepper
  int64_t step = 0;
  data::LoaderState position;
  optim::PlateauState plateau;
  double best_loss = 0;
  int64_t bad_epochs = 0;
  bool has_best = false;
  std::atomic<bool> stop{false};

  State(Cluster& cluster, Model model, TrainerOptions given)
      : cluster(cluster), model(std::move(model)), options(std::move(given)) {
    loss = loss_by_name(options.loss, options.label_smoothing);
    choices.tune = options.tune;
    choices.exact_convolutions = options.exact_convolutions;
    threads = options.threads > 0 ? options.threads : cluster.cores();
    require(options.lanes >= 0, ErrorKind::invalid_argument,
            "lanes: got {}, expected a positive number, or 0 for one a core", options.lanes);
    lanes = options.lanes > 0 ? options.lanes : threads * cluster.size();
  }

  bool trained(const std::string& name) const {
    return std::none_of(options.freeze.begin(), options.freeze.end(),
                        [&](const std::string& prefix) { return name.starts_with(prefix); });
  }

  void build(const TensorType& type) {
    if (built) {
      require(type == sample, ErrorKind::shape, "the model was built for samples {}, not for {}",
              to_string(sample), to_string(type));
      return;
    }
    ModelGraph graph = inference_graph(model, batch_of(type, 1));
    const Program program(std::move(graph.graph), {}, choices);
    parameters = Parameters(program.parameter_entries());
    for (const ParameterEntry& entry : parameters.entries())
      parameters.set(entry.name, nn::initial_value(options.seed, entry.name, entry.shape,
                                                   graph.initialisers.at(entry.name)));
    sample = type;
    built = true;
  }

  Stepper& stepper_for(const TensorType& target) {
    if (stepper && stepper_target == target) return *stepper;
    stepper = std::make_unique<Stepper>(
        model, sample, target, loss, options.optimizer, parameters, choices,
        StepperOptions{.threads = threads,
                       .lanes = lanes,
                       .seed = options.seed,
                       .memory_limit = options.memory_limit,
                       .check_numbers = options.check_numbers,
                       .trained = [this](const std::string& name) { return trained(name); }});
    stepper_target = target;
    if (!pending_optimizer.empty())
      stepper->set_optimizer_state(std::exchange(pending_optimizer, {}));
    return *stepper;
  }

  checkpoint::Checkpoint checkpoint() const {
    checkpoint::Checkpoint result;
    result.step = step;
    for (const ParameterEntry& entry : parameters.entries())
      result.weights.push_back({entry.name, parameters.get(entry.name)});
    if (stepper) result.optimizer = stepper->optimizer_state();
    const Json state = {{"lanes", lanes},
                        {"seed", options.seed},
                        {"loader", {{"epoch", position.epoch}, {"position", position.position}}},
                        {"plateau",
                         {{"started", plateau.started},
                          {"best", plateau.best},
                          {"bad_epochs", plateau.bad_epochs},
                          {"cooldown_left", plateau.cooldown_left},
                          {"factor", plateau.factor}}},
                        {"best_loss", best_loss},
                        {"has_best", has_best},
                        {"bad_epochs", bad_epochs},
                        {"plan", to_string(choices)}};
    result.state = state.dump();
    return result;
  }

  void load(const NamedTensors& weights) {
    std::vector<checkpoint::Expected> expected;
    for (const ParameterEntry& entry : parameters.entries())
      expected.push_back({entry.name, entry.shape});
    const checkpoint::Match match = checkpoint::match(expected, weights);
    require(match.complete(), ErrorKind::shape, "the weights do not fit the model:\n{}",
            match.report());
    for (const NamedTensor& weight : weights)
      if (parameters.contains(weight.name)) parameters.set(weight.name, weight.tensor);
  }

  void restore(const checkpoint::Checkpoint& saved) {
    load(saved.weights);
    step = saved.step;
    try {
      const Json state = Json::parse(saved.state);
      const int saved_lanes = state.at("lanes");
      require(options.lanes == 0 || options.lanes == saved_lanes, ErrorKind::invalid_argument,
              "the checkpoint was made with lanes = {}, not {}; with another number the result "
              "would have other bits",
              saved_lanes, options.lanes);
      lanes = saved_lanes;
      position = {state.at("loader").at("epoch"), state.at("loader").at("position")};
      const Json& p = state.at("plateau");
      plateau = {p.at("started"), p.at("best"), p.at("bad_epochs"), p.at("cooldown_left"),
                 p.at("factor")};
      best_loss = state.at("best_loss");
      has_best = state.at("has_best");
      bad_epochs = state.at("bad_epochs");
      const bool tune = choices.tune;
      choices = parse_choices(state.at("plan").get<std::string>());
      choices.tune = tune;
    } catch (const Json::exception& error) {
      fail(ErrorKind::corrupt, "[checkpoint] the state of the run is not readable: {}",
           error.what());
    }
    stepper.reset();
    pending_optimizer = saved.optimizer;
  }
};

Trainer::Trainer(Cluster& cluster, Model model, TrainerOptions options)
    : state_(std::make_unique<State>(cluster, std::move(model), std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::build(const TensorType& sample) { state_->build(sample); }
bool Trainer::built() const { return state_->built; }
Parameters& Trainer::parameters() { return state_->parameters; }
NamedTensors Trainer::weights() const { return state_->checkpoint().weights; }
const KernelChoices& Trainer::choices() const { return state_->choices; }
void Trainer::load_weights(const NamedTensors& weights) { state_->load(weights); }
checkpoint::Checkpoint Trainer::checkpoint() const { return state_->checkpoint(); }
void Trainer::restore(const checkpoint::Checkpoint& checkpoint) { state_->restore(checkpoint); }
void Trainer::request_stop() { state_->stop = true; }

FitResult Trainer::fit(Tensor x, Tensor y, const FitOptions& options) {
  return fit(data::tensor_dataset(std::move(x), std::move(y)), options);
}

FitResult Trainer::fit(data::DatasetPtr train, const FitOptions& options) {
  State& s = *state_;
  require(options.batch_size >= s.lanes, ErrorKind::invalid_argument,
          "batch_size: got {}, expected at least one sample for each of the {} lanes",
          options.batch_size, s.lanes);
  data::Loader loader(train,
                      {.sampling = {.batch_size = options.batch_size, .seed = s.options.seed},
                       .augmentation = options.augment,
                       .threads = options.loader_threads,
                       .epochs = options.steps > 0 && options.epochs <= 0 ? 0 : options.epochs});
  const data::SampleLayout& layout = loader.layout();
  s.build(input_type(layout));
  if (options.resume) {
    if (const auto newest = checkpoint::load_newest(options.checkpoints)) {
      for (const std::string& reason : newest->refused) log(LogLevel::warning, "{}", reason);
      s.restore(newest->checkpoint);
    }
  }
  loader.seek(s.position);
  Stepper& stepper = s.stepper_for(target_type(layout));
  const int64_t per_epoch = loader.sampler().batches_per_epoch();
  const int64_t by_epochs = options.epochs > 0 ? options.epochs * per_epoch : INT64_MAX;
  const int64_t total = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
  const optim::Schedule schedule(
      s.options.schedule, s.options.optimizer.learning_rate,
      {.total_steps = total, .steps_per_epoch = per_epoch, .batch_size = options.batch_size});
  const auto* plateau_settings = std::get_if<optim::Plateau>(&s.options.schedule.shape);
  optim::PlateauReducer plateau(plateau_settings ? *plateau_settings : optim::Plateau{}, s.plateau);

  FitResult result;
  TrainingState now;
  now.steps = total;
  now.epochs = (total + per_epoch - 1) / per_epoch;
  const Clock::time_point begin = Clock::now();
  double epoch_loss = 0;
  int64_t epoch_correct = 0, epoch_samples = 0;
  int64_t last_saved = -1;
  const auto save = [&](bool best) {
    if (options.checkpoints.empty() || (last_saved == s.step && !best)) return;
    checkpoint::save_checkpoint(options.checkpoints, s.checkpoint(),
                                {.keep_last = options.keep_last, .best = best});
    last_saved = s.step;
  };
  const auto proceed = [&](const std::vector<Callback>& callbacks) {
    bool go_on = true;
    for (const Callback& callback : callbacks) go_on = callback(now) && go_on;
    return go_on;
  };

  s.stop = false;
  if (s.step >= total) result.stopped_by = "steps";
  while (result.stopped_by.empty()) {
    const std::optional<data::Batch> batch = loader.next();
    if (!batch) {
      result.stopped_by = "epochs";
      break;
    }
    ++s.step;
    now.step = s.step;
    now.epoch = batch->epoch + 1;
    now.learning_rate = schedule.at(s.step) * (plateau_settings ? plateau.factor() : 1);
    const StepStatistics statistics =
        stepper.step(batch->x, batch->y, s.step, static_cast<float>(now.learning_rate));
    s.position = loader.state();
    now.loss = statistics.loss;
    now.samples += batch->size();
    now.accuracy = static_cast<double>(statistics.correct) /
                   static_cast<double>(std::max<int64_t>(1, batch->y.elements()));
    now.seconds = seconds_between(begin, Clock::now());
    now.seconds_waited = loader.seconds_waited();
    epoch_loss += statistics.loss * static_cast<double>(batch->size());
    epoch_correct += statistics.correct;
    epoch_samples += batch->size();
    if (!proceed(options.after_step)) result.stopped_by = "callback";
    if (s.stop) result.stopped_by = "request";
    if (options.max_seconds > 0 && now.seconds >= options.max_seconds) result.stopped_by = "time";
    if (s.step >= total) result.stopped_by = options.steps > 0 ? "steps" : "epochs";

    bool best = false;
    if (s.step % per_epoch == 0 && result.stopped_by != "request") {
      now.loss = epoch_loss / static_cast<double>(epoch_samples);
      now.accuracy = static_cast<double>(epoch_correct) / static_cast<double>(epoch_samples);
      epoch_loss = 0;
      epoch_correct = epoch_samples = 0;
      double watched = now.loss;
      if (options.validation) {
        const Evaluation test = evaluate(options.validation, options.augment.for_testing());
        now.test_loss = watched = test.loss;
        now.test_accuracy = test.accuracy;
        if (options.target_accuracy > 0 && test.accuracy >= options.target_accuracy)
          result.stopped_by = "target accuracy";
      }
      best = !s.has_best || watched < s.best_loss;
      s.bad_epochs = best ? 0 : s.bad_epochs + 1;
      if (best) s.best_loss = watched;
      s.has_best = true;
      if (options.patience > 0 && s.bad_epochs >= options.patience) result.stopped_by = "patience";
      if (plateau_settings) {
        plateau.observe(watched);
        s.plateau = plateau.state();
      }
      now.seconds = seconds_between(begin, Clock::now());
      result.epochs.push_back(now);
      if (!proceed(options.after_epoch)) result.stopped_by = "callback";
      save(best);
    } else if (options.save_every > 0 && s.step % options.save_every == 0) {
      save(false);
    }
  }
  save(false);
  result.last = now;
  return result;
}

Evaluation Trainer::evaluate(data::DatasetPtr test, const data::Augmentation& augment,
                             int64_t batch_size) {
  State& s = *state_;
  data::Loader loader(test, {.sampling = {.batch_size = std::min(batch_size, test->size()),
                                          .shuffle = false,
                                          .last_batch = data::LastBatch::keep},
                             .augmentation = augment,
                             .threads = 1,
                             .epochs = 1});
  s.build(input_type(loader.layout()));
  Evaluator evaluator(s.model, s.sample, target_type(loader.layout()), s.loss, s.parameters,
                      s.choices, s.threads);
  Evaluation result;
  int64_t targets = 0;
  while (const std::optional<data::Batch> batch = loader.next()) {
    const Evaluator::Sums sums = evaluator.evaluate(batch->x, batch->y);
    result.loss += sums.loss;
    result.correct += sums.correct;
    result.samples += sums.samples;
    targets += batch->y.elements();
  }
  result.loss /= static_cast<double>(std::max<int64_t>(1, result.samples));
  result.accuracy =
      static_cast<double>(result.correct) / static_cast<double>(std::max<int64_t>(1, targets));
  return result;
}

Tensor Trainer::predict(const Tensor& x) {
  State& s = *state_;
  Shape sample = x.shape();
  sample = Shape(std::vector<int64_t>(sample.extents().begin() + 1, sample.extents().end()));
  s.build({x.dtype(), sample});
  return Evaluator(s.model, s.sample, std::nullopt, s.loss, s.parameters, s.choices, s.threads)
      .predict(x);
}

}  // namespace artel
