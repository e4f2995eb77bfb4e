#include "artel/train/trainer.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/checkpoint/weights.h"
#include "artel/data/loader.h"
#include "artel/train/agreement.h"
#include "artel/train/balance.h"
#include "artel/train/batches.h"
#include "artel/train/evaluator.h"
#include "artel/train/exchange.h"
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
  struct {
    double loss = 0;
    int64_t correct = 0, labels = 0, samples = 0;
  } epoch;  // sums over the steps of the current epoch
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

  // Gradients that other workers will read lie in shared memory from the start.
  std::function<std::shared_ptr<std::byte>(size_t)> sum_memory() {
    comm::Group* group = cluster.group();
    if (!group) return {};
    return [group](size_t bytes) { return group->allocate(bytes); };
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
                       .trained = [this](const std::string& name) { return trained(name); },
                       .allocate_sums = sum_memory()});
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
    result.state = state_text();
    return result;
  }

  std::string state_text() const {
    return Json({{"step", step},
                 {"lanes", lanes},
                 {"seed", options.seed},
                 {"loader", {{"epoch", position.epoch}, {"position", position.position}}},
                 {"plateau",
                  {{"started", plateau.started},
                   {"best", plateau.best},
                   {"bad_epochs", plateau.bad_epochs},
                   {"cooldown_left", plateau.cooldown_left},
                   {"factor", plateau.factor}}},
                 {"epoch",
                  {{"loss", epoch.loss},
                   {"correct", epoch.correct},
                   {"labels", epoch.labels},
                   {"samples", epoch.samples}}},
                 {"best_loss", best_loss},
                 {"has_best", has_best},
                 {"bad_epochs", bad_epochs},
                 {"plan", to_string(choices)}})
        .dump();
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
    restore_state(saved.state);
    stepper.reset();
    pending_optimizer = saved.optimizer;
  }

  void restore_state(const std::string& text) {
    try {
      const Json state = Json::parse(text);
      const int saved_lanes = state.at("lanes");
      require(options.lanes == 0 || options.lanes == saved_lanes, ErrorKind::invalid_argument,
              "the checkpoint was made with lanes = {}, not {}; with another number the result "
              "would have other bits",
              saved_lanes, options.lanes);
      lanes = saved_lanes;
      step = state.at("step");
      position = {state.at("loader").at("epoch"), state.at("loader").at("position")};
      const Json& p = state.at("plateau");
      plateau = {p.at("started"), p.at("best"), p.at("bad_epochs"), p.at("cooldown_left"),
                 p.at("factor")};
      const Json& e = state.at("epoch");
      epoch = {e.at("loss"), e.at("correct"), e.at("labels"), e.at("samples")};
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

// One call of fit: the loop, its criteria and what it saves.
class Trainer::FitLoop {
 public:
  FitLoop(Trainer& trainer, data::DatasetPtr train, const FitOptions& options)
      : trainer_(trainer),
        s_(*trainer.state_),
        options_(options),
        loader_(train, {.sampling = {.batch_size = options.batch_size, .seed = s_.options.seed},
                        .augmentation = options.augment,
                        .threads = options.loader_threads,
                        .epochs = options.steps > 0 && options.epochs <= 0 ? 0 : options.epochs}),
        per_epoch_(loader_.sampler().batches_per_epoch()),
        exchange_(s_.cluster.group(),
                  {.strategy = s_.options.strategy, .reduction = s_.options.reduction}) {
    s_.build(input_type(loader_.layout()));
    begin_together();
    require(options.batch_size >= s_.lanes, ErrorKind::invalid_argument,
            "batch_size: got {}, expected at least one sample for each of the {} lanes",
            options.batch_size, s_.lanes);
    stepper_ = &s_.stepper_for(target_type(loader_.layout()));
    if (s_.cluster.group()) share_state(*s_.cluster.group());
    loader_.seek(s_.position);
    set_layout(comm::LaneLayout::even(s_.lanes, s_.cluster.size()));
    const int64_t by_epochs = options.epochs > 0 ? options.epochs * per_epoch_ : INT64_MAX;
    now_.steps = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
    now_.epochs = (now_.steps + per_epoch_ - 1) / per_epoch_;
    now_.step = s_.step;
    schedule_.emplace(s_.options.schedule, s_.options.optimizer.learning_rate,
                      optim::Horizon{.total_steps = now_.steps,
                                     .steps_per_epoch = per_epoch_,
                                     .batch_size = options.batch_size});
    if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape))
      plateau_.emplace(*plateau, s_.plateau);
  }

  FitResult run() {
    s_.stop = false;
    if (s_.step >= now_.steps) result_.stopped_by = "steps";
    while (result_.stopped_by.empty()) {
      const std::optional<data::Batch> batch = loader_.next();
      if (!batch) {
        result_.stopped_by = "epochs";
        break;
      }
      step(*batch);
      if (s_.step % per_epoch_ == 0 && result_.stopped_by != "request")
        end_epoch();
      else if (options_.save_every > 0 && s_.step % options_.save_every == 0)
        save(false);
    }
    save(false);
    result_.last = now_;
    return std::move(result_);
  }

 private:
  // Restores what is to be resumed, and makes sure that all workers do the same thing.
  void begin_together() {
    if (options_.resume && s_.cluster.rank() == 0) {
      if (const auto newest = checkpoint::load_newest(options_.checkpoints)) {
        for (const std::string& reason : newest->refused) log(LogLevel::warning, "{}", reason);
        s_.restore(newest->checkpoint);
      }
    }
    if (!s_.cluster.group()) return;
    comm::Group& group = *s_.cluster.group();
    if (s_.choices.tune) {
      // Timing decides on worker 0 only; all others get its choices.
      if (group.rank() == 0)
        s_.stepper_for(target_type(loader_.layout())).buckets(options_.batch_size);
      s_.choices.tune = false;
    }
    s_.restore_state(broadcast_text(group, s_.state_text()));
    check_agreement(group, facts());
  }

  Facts facts() const {
    const data::SampleLayout& layout = loader_.layout();
    Facts facts = {{"samples", std::to_string(loader_.set().size())},
                   {"sample", to_string(input_type(layout))},
                   {"classes", std::to_string(layout.classes)},
                   {"batch_size", std::to_string(options_.batch_size)},
                   {"epochs", std::to_string(options_.epochs)},
                   {"steps", std::to_string(options_.steps)},
                   {"seed", std::to_string(s_.options.seed)},
                   {"lanes", std::to_string(s_.lanes)},
                   {"loss", s_.options.loss},
                   {"strategy", s_.options.strategy},
                   {"reduction", s_.options.reduction},
                   {"plan", std::to_string(hash_name(to_string(s_.choices)))}};
    for (const auto& [key, value] : optim::to_options(s_.options.optimizer))
      facts.emplace_back("optimizer." + key, value);
    for (const auto& [key, value] : optim::to_options(s_.options.schedule))
      facts.emplace_back("schedule." + key, value);
    for (const ParameterEntry& entry : s_.parameters.entries())
      facts.emplace_back("parameter " + entry.name, to_string(entry.shape));
    // The first and the last sample stand for the content of the data.
    for (const int64_t sample : {int64_t{0}, loader_.set().size() - 1}) {
      const data::SampleLayout& raw = loader_.set().layout();
      std::string bytes(raw.input_bytes() + raw.target_bytes(), '\0');
      const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
      loader_.set().read(sample, all.first(raw.input_bytes()), all.subspan(raw.input_bytes()));
      facts.emplace_back(fmt::format("data sample {}", sample), std::to_string(hash_name(bytes)));
    }
    return facts;
  }

  // Weights and optimizer state of worker 0, which may have loaded them from a file.
  void share_state(comm::Group& group) {
    group.broadcast(std::as_writable_bytes(s_.parameters.block()), 0, {.label = "parameters"});
    for (const std::span<float> block : stepper_->optimizer_memory())
      group.broadcast(std::as_writable_bytes(block), 0, {.label = "optimizer"});
  }

  void set_layout(comm::LaneLayout layout) {
    require(s_.lanes >= s_.cluster.size(), ErrorKind::invalid_argument,
            "cluster.lanes: got {}, expected at least one for each of the {} workers", s_.lanes,
            s_.cluster.size());
    const comm::LaneRange own = layout.range(s_.cluster.rank());
    const auto row = [&](int lane) {
      return Stepper::rows_of_lane(options_.batch_size, s_.lanes, lane).first;
    };
    loader_.serve(row(own.first), row(own.last));
    exchange_.set_layout(std::move(layout));
  }

  void step(const data::Batch& batch) {
    ++s_.step;
    now_.step = s_.step;
    now_.epoch = batch.epoch + 1;
    now_.learning_rate = schedule_->at(s_.step) * (plateau_ ? plateau_->factor() : 1);
    const auto rate = static_cast<float>(now_.learning_rate);
    const std::vector<Bucket>& buckets = stepper_->buckets(options_.batch_size);
    const Clock::time_point before = Clock::now();
    stepper_->compute({.range = exchange_.layout().range(s_.cluster.rank()),
                       .batch = options_.batch_size,
                       .step = s_.step,
                       .stop = s_.stop},
                      batch.x, batch.y, [&](int bucket, const std::vector<std::byte*>& partials) {
                        exchange_.start(bucket, buckets[bucket], partials);
                      });
    computing_ += seconds_between(before, Clock::now());
    const StepStatistics statistics = stepper_->read_statistics(exchange_.wait(0), s_.step);
    float scale = 1;
    if (stepper_->clips()) {
      for (size_t b = 1; b < buckets.size(); ++b) exchange_.wait(static_cast<int>(b));
      scale = stepper_->clip_scale(exchange_.wait(0));
    }
    for (int b = 0; b < static_cast<int>(buckets.size()); ++b)
      stepper_->apply_bucket(b, exchange_.wait(b), s_.step, rate, scale);
    s_.position = loader_.state();
    account(statistics, batch);
    if (s_.cluster.size() > 1 && s_.step % kBalanceEvery == 0) balance();
  }

  void account(const StepStatistics& statistics, const data::Batch& batch) {
    const int64_t samples = options_.batch_size;
    // Language models have a label for each position.
    const int64_t labels = batch.size() > 0 ? batch.y.elements() / batch.size() * samples : samples;
    now_.loss = statistics.loss;
    now_.samples += samples;
    now_.accuracy = static_cast<double>(statistics.correct) / static_cast<double>(labels);
    now_.seconds = seconds_between(begin_, Clock::now());
    now_.seconds_waited = loader_.seconds_waited();
    now_.seconds_exchanging = exchange_.traffic().waited_seconds;
    s_.epoch.loss += statistics.loss * static_cast<double>(samples);
    s_.epoch.correct += statistics.correct;
    s_.epoch.labels += labels;
    s_.epoch.samples += samples;
    bool go_on = true;
    for (const Callback& callback : options_.after_step) go_on = callback(now_) && go_on;
    if (!go_on) s_.stop = true;
    if (options_.max_seconds > 0 && now_.seconds >= options_.max_seconds) s_.stop = true;
    // Several workers stop together: the wish of one travels with the sums of the next step.
    const bool stop = s_.cluster.size() > 1 ? statistics.stop : s_.stop.load();
    if (stop)
      result_.stopped_by = !go_on ? "callback"
                           : options_.max_seconds > 0 && now_.seconds >= options_.max_seconds
                               ? "time"
                               : "request";
    if (s_.step >= now_.steps) result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
  }

  void end_epoch() {
    now_.loss = s_.epoch.loss / static_cast<double>(s_.epoch.samples);
    now_.accuracy = static_cast<double>(s_.epoch.correct) / static_cast<double>(s_.epoch.labels);
    s_.epoch = {};
    double watched = now_.loss;
    if (options_.validation) {
      const Evaluation test =
          trainer_.evaluate(options_.validation, options_.augment.for_testing());
      now_.test_loss = watched = test.loss;
      now_.test_accuracy = test.accuracy;
      if (options_.target_accuracy > 0 && test.accuracy >= options_.target_accuracy)
        result_.stopped_by = "target accuracy";
    }
    const bool best = !s_.has_best || watched < s_.best_loss;
    s_.bad_epochs = best ? 0 : s_.bad_epochs + 1;
    if (best) s_.best_loss = watched;
    s_.has_best = true;
    if (options_.patience > 0 && s_.bad_epochs >= options_.patience)
      result_.stopped_by = "patience";
    if (plateau_) {
      plateau_->observe(watched);
      s_.plateau = plateau_->state();
    }
    now_.seconds = seconds_between(begin_, Clock::now());
    result_.epochs.push_back(now_);
    bool go_on = true;
    for (const Callback& callback : options_.after_epoch) go_on = callback(now_) && go_on;
    if (!go_on) {
      s_.stop = true;
      if (s_.cluster.size() == 1) result_.stopped_by = "callback";
    }
    save(best);
  }

  void save(bool best) {
    if (options_.checkpoints.empty() || s_.cluster.rank() != 0) return;
    if (saved_ == s_.step && !best) return;
    checkpoint::save_checkpoint(options_.checkpoints, s_.checkpoint(),
                                {.keep_last = options_.keep_last, .best = best});
    saved_ = s_.step;
  }

  // Gives each worker lanes in proportion to its measured speed; the bits do not change.
  void balance() {
    comm::Group& group = *s_.cluster.group();
    const comm::LaneLayout& old = exchange_.layout();
    const double own = computing_ / old.lanes_of_rank[group.rank()];
    computing_ = 0;
    std::vector<double> seconds(static_cast<size_t>(group.size()));
    group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(seconds)),
                     {}, {.label = "speed"});
    comm::LaneLayout better = balanced_lanes(old, seconds);
    if (better.lanes_of_rank != old.lanes_of_rank) set_layout(std::move(better));
  }

  static constexpr int64_t kBalanceEvery = 16;

  Trainer& trainer_;
  State& s_;
  const FitOptions& options_;
  data::Loader loader_;
  int64_t per_epoch_;
  Exchange exchange_;
  Stepper* stepper_ = nullptr;
  std::optional<optim::Schedule> schedule_;
  std::optional<optim::PlateauReducer> plateau_;
  TrainingState now_;
  FitResult result_;
  Clock::time_point begin_ = Clock::now();
  double computing_ = 0;  // seconds since the last balance
  int64_t saved_ = -1;
};

FitResult Trainer::fit(data::DatasetPtr train, const FitOptions& options) {
  try {
    return FitLoop(*this, std::move(train), options).run();
  } catch (const std::exception& error) {
    if (comm::Group* group = state_->cluster.group())
      group->abort(fmt::format("worker {}: {}", group->rank(), error.what()));
    throw;
  }
}

Evaluation Trainer::evaluate(data::DatasetPtr test, const data::Augmentation& augment,
                             int64_t batch_size) {
  State& s = *state_;
  const int64_t size = std::min(batch_size, test->size());
  data::Loader loader(
      test,
      {.sampling = {.batch_size = size, .shuffle = false, .last_batch = data::LastBatch::keep},
       .augmentation = augment,
       .threads = 1,
       .epochs = 1});
  s.build(input_type(loader.layout()));
  Evaluator evaluator(s.model, s.sample, target_type(loader.layout()), s.loss, s.parameters,
                      s.choices, s.threads);
  // Workers take batches in turn; sums are added in the order of batches, so that the result does
  // not depend on the number of workers.
  const auto workers = static_cast<int64_t>(s.cluster.size());
  std::vector<double> losses, counts;  // of each batch: loss; right answers, samples, labels
  for (int64_t number = 0;; ++number) {
    const data::LoaderState place = {0, number * size};
    if (place.position >= test->size()) break;
    losses.push_back(0);
    counts.resize(counts.size() + 3, 0);
    if (number % workers != s.cluster.rank()) continue;
    const std::optional<data::Batch> batch =
        workers == 1 ? loader.next()
                     : loader.batch(place, 0, std::min(size, test->size() - place.position));
    const Evaluator::Sums sums = evaluator.evaluate(batch->x, batch->y);
    losses.back() = sums.loss;
    counts[counts.size() - 3] = static_cast<double>(sums.correct);
    counts[counts.size() - 2] = static_cast<double>(sums.samples);
    counts[counts.size() - 1] = static_cast<double>(batch->y.elements());
  }
  if (comm::Group* group = s.cluster.group()) {
    group->all_reduce(std::as_writable_bytes(std::span(losses)), comm::ElementType::f64, {},
                      {.label = "test losses"});
    group->all_reduce(std::as_writable_bytes(std::span(counts)), comm::ElementType::f64, {},
                      {.label = "test counts"});
  }
  Evaluation result;
  double labels = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    result.loss += losses[i];
    result.correct += static_cast<int64_t>(counts[3 * i]);
    result.samples += static_cast<int64_t>(counts[3 * i + 1]);
    labels += counts[3 * i + 2];
  }
  result.loss /= static_cast<double>(std::max<int64_t>(1, result.samples));
  result.accuracy = static_cast<double>(result.correct) / std::max(1.0, labels);
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
