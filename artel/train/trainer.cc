#include "artel/train/trainer.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "artel/data/loader.h"
#include "artel/predict/evaluator.h"
#include "artel/predict/linear.h"
#include "artel/tensor/quantised.h"
#include "artel/train/loop/fit_loop.h"
#include "artel/train/loop/mistake_collector.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

// Sums of a test that workers keep before adding them up.
constexpr size_t kMostSums = size_t{4} << 20;  // bytes

// The requested number of rows, or fewer if they take too much memory; several blocks are read
// ahead.
int64_t rows_at_a_time(int64_t rows, const data::SampleLayout& layout) {
  constexpr int64_t kFew = 64, kMostBytes = int64_t{32} << 20;
  const auto row = layout.input.elements() * static_cast<int64_t>(size_of(layout.input_type));
  while (rows > kFew && rows * row > kMostBytes) rows = std::max(kFew, rows / 2);
  return rows;
}

// A linear model evaluates sparse rows directly, because dense rows may not fit into memory.
std::optional<Evaluation> evaluate_sparse(TrainerState& s, const data::Dataset& test,
                                          const data::Augmentation& augment) {
  const data::SampleLayout& layout = test.layout();
  const std::string loss = loss_name(s.options.loss);
  const bool classes = loss == "cross_entropy" && layout.classes == 2;
  const bool values = loss == "mse" && layout.target_kind == data::TargetKind::values;
  const std::vector<Metric> metrics = s.metrics_for(layout);
  const bool counted = metrics.empty() || (metrics.size() == 1 && metrics[0].name == "accuracy");
  if (!counted || !test.sparse() || !augment.transforms.empty() ||
      s.model.network().kind() != "linear" || !(classes || values))
    return {};
  s.build(input_type(layout));
  s.fill();
  const LinearSums sums = evaluate_linear(*test.sparse(), s.parameters, classes);
  Evaluation result = {.loss = sums.loss / static_cast<double>(test.size()),
                       .correct = sums.correct,
                       .samples = test.size(),
                       .labels = test.size()};
  result.metrics =
      Metrics(metrics, {Shape{2}})
          .values(std::vector{static_cast<double>(sums.correct), static_cast<double>(test.size())});
  result.accuracy = accuracy_of(result.metrics);
  return result;
}

// Per-sample rows for metrics that need all of them, in the order of the samples.
class TestRows {
 public:
  TestRows(const Metrics& metrics, int64_t samples)
      : samples_(static_cast<size_t>(samples)), rows_(metrics.parts().size()) {}

  // Adds samples from `first` on.
  void add(int64_t first, const Evaluator::Sums& sums) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::vector<float>& own = sums.rows[i];
      if (own.empty()) continue;
      const size_t each = own.size() / static_cast<size_t>(sums.samples);
      rows_[i].resize(samples_ * each);
      std::ranges::copy(own, rows_[i].begin() + static_cast<std::ptrdiff_t>(each) * first);
    }
  }

  // Collective. Each worker has the rows of its own samples, and zeros elsewhere.
  std::vector<std::vector<float>> gather(comm::Group* group) {
    for (std::vector<float>& own : rows_) {
      if (!group) continue;
      auto size = static_cast<int64_t>(own.size());  // 0 on a worker without samples
      group->all_reduce(std::as_writable_bytes(std::span(&size, 1)), comm::ElementType::i64,
                        comm::ReductionKind::max, {.label = "rows of the test"});
      own.resize(static_cast<size_t>(size));
      constexpr size_t kMost = kMostSums / sizeof(float);
      for (size_t first = 0; first < own.size(); first += kMost)
        group->all_reduce(std::as_writable_bytes(
                              std::span(own).subspan(first, std::min(kMost, own.size() - first))),
                          comm::ElementType::f32, {}, {.label = "rows of the test"});
    }
    return std::move(rows_);
  }

 private:
  size_t samples_;
  std::vector<std::vector<float>> rows_;
};

// Rows from a caller as a data set, so that workers can compare them.
class GivenRows final : public data::Dataset {
 public:
  GivenRows(Tensor x, Tensor y) : x_(std::move(x)), y_(std::move(y)) {
    const auto row = [](const Tensor& rows) {
      const std::vector<int64_t>& all = rows.shape().extents();
      return Shape(std::vector<int64_t>(all.begin() + 1, all.end()));
    };
    layout_ = {.input = row(x_), .input_type = x_.dtype(), .target = row(y_)};
    layout_.target_kind =
        y_.dtype() == DType::f32 ? data::TargetKind::values : data::TargetKind::classes;
  }

  int64_t size() const override { return x_.shape()[0]; }
  const data::SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::memcpy(input.data(), x_.rows(index, index + 1).raw(), input.size());
    std::memcpy(target.data(), y_.rows(index, index + 1).raw(), target.size());
  }

 private:
  Tensor x_, y_;
  data::SampleLayout layout_;
};

void check_takes_batches(const Situation& situation) {
  const StrategyKind& kind = strategy_at_work(situation);
  require(
      kind.takes_batches, ErrorKind::unsupported,
      "train_on_batch: got the strategy \"{}\" ({}), expected one in which workers compute each "
      "step together; try fit",
      situation.options.strategy, kind.title);
}

void check_given(const TrainerOptions& options, const Tensor& x, const Tensor& y, bool has_rate) {
  const auto fits = [](const Tensor& rows) {
    return rows.shape().rank() >= 1 && (rows.dtype() == DType::f32 || rows.dtype() == DType::i32);
  };
  require(fits(x) && fits(y) && x.shape()[0] == y.shape()[0] && x.shape()[0] > 0, ErrorKind::shape,
          "train_on_batch: got x {} and y {}, expected as many rows of both, f32 or i32",
          to_string(TensorType{x.dtype(), x.shape()}), to_string(TensorType{y.dtype(), y.shape()}));
  require(has_rate || (std::holds_alternative<optim::Constant>(options.schedule.shape) &&
                       options.schedule.warmup == 0 && options.schedule.scaling == "none"),
          ErrorKind::invalid_argument,
          "train_on_batch: the schedule needs the number of steps and samples per epoch; give the "
          "learning rate of each step");
}

}  // namespace

// The state of successive calls of train_on_batch: the type of their rows, and the loop.
struct Trainer::BatchLoop {
  TensorType x, y;  // of one row
  FitOptions options;
  std::optional<FitLoop> loop;
};

Trainer::Trainer(Cluster& cluster, Model model, TrainerOptions options)
    : state_(std::make_unique<TrainerState>(cluster, std::move(model), std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::build(const TensorType& sample) { state_->build(sample); }
bool Trainer::built() const { return state_->built; }
Parameters& Trainer::parameters() {
  state_->fill();
  return state_->parameters;
}
const Parameters& Trainer::layout() const { return state_->parameters; }
NamedTensors Trainer::weights() const {
  state_->fill();
  return tensors_of(state_->parameters.sources());
}
const KernelChoices& Trainer::choices() const { return state_->choices; }
int Trainer::lanes() const {
  const StrategyKind& kind = find_strategy(state_->options.strategy, state_->cluster.servers());
  return kind.workload ? 0 : state_->lanes;
}
void Trainer::load_weights(const NamedTensors& weights,
                           const std::function<bool(const std::string&)>& wanted) {
  batch_loop_.reset();
  state_->in_step = false;
  state_->drop_quantised();
  state_->load_weights(weights, wanted);
}
void Trainer::load_for_inference(const NamedTensors& weights) {
  load_weights(weights);
  TrainerState& s = *state_;
  const bool any = std::ranges::any_of(
      weights, [](const NamedTensor& weight) { return name_of_codes(weight.name).has_value(); });
  if (!any || s.shards > 1) return;
  s.predictor.reset();
  s.quantised = std::make_unique<QuantisedWeights>(s.model, s.sample, weights, s.choices);
}
checkpoint::Checkpoint Trainer::checkpoint() const {
  state_->fill();
  return state_->checkpoint();
}
void Trainer::restore(const checkpoint::Checkpoint& checkpoint) {
  batch_loop_.reset();
  state_->drop_quantised();
  state_->restore(checkpoint);
}
void Trainer::request_stop(int signal) {
  state_->stop_signal = signal;
  state_->stop = true;
}
void Trainer::request_trace(int64_t steps) { state_->trace = steps; }
void Trainer::request_leave() { (state_->cluster.elastic() ? state_->leave : state_->stop) = true; }

FitResult Trainer::fit(Tensor x, Tensor y, const FitOptions& options) {
  return fit(data::tensor_dataset(std::move(x), std::move(y)), options);
}

FitResult Trainer::fit(data::DatasetPtr train, const FitOptions& options) {
  require(!state_->stages, ErrorKind::invalid_argument,
          "fit: the network was divided for predictions; train it with another trainer");
  state_->drop_quantised();
  require(options.epochs > 0 || options.steps > 0, ErrorKind::invalid_argument,
          "train.epochs: got {} with train.steps = {}, expected a positive number of one of them; "
          "for a limit of time only, try many epochs with train.max_seconds",
          options.epochs, options.steps);
  FitOptions adapted = options;
  const StrategyKind& kind = find_strategy(state_->options.strategy, state_->cluster.servers());
  if (kind.adjust_fit) kind.adjust_fit(adapted, *train);
  std::optional<FitLoop> loop;  // outlives the attempt: if that fails, the group is aborted first
  FitResult result;
  state_->stop = false;
  state_->stop_signal = 0;
  state_->trace = 0;
  const std::unique_ptr<BatchLoop> batches = std::move(batch_loop_);
  std::optional<NotBegun> not_begun;
  state_->cluster.attempt([&] {
    try {
      if (batches) batches->loop->settle();
      loop.emplace(*this, *state_, std::move(train), adapted);
      result = loop->run();
    } catch (const NotBegun& error) {
      not_begun = error;  // all members have it, and their group works
    }
  });
  if (not_begun) throw NotBegun(*not_begun);
  return result;
}

TrainingState Trainer::train_on_batch(const Tensor& x, const Tensor& y,
                                      std::optional<double> learning_rate) {
  check_given(state_->options, x, y, learning_rate.has_value());
  check_takes_batches({state_->cluster, state_->options, {}});
  state_->drop_quantised();
  const Situation now = {state_->cluster, state_->options, state_->kept};
  bool takes_batches = true;
  const auto rows = std::make_shared<GivenRows>(x, y);
  const TensorType x_type = input_type(rows->layout()), y_type = target_type(rows->layout());
  // Outlives the attempt, as in fit, but not its failure. The next call starts over.
  std::unique_ptr<BatchLoop> batches = std::move(batch_loop_);
  TrainingState result;
  state_->cluster.attempt([&] {
    if (batches && (batches->x != x_type || batches->y != y_type)) {
      batches->loop->settle();
      batches.reset();
    }
    if (!batches) {
      batches.reset(new BatchLoop{x_type, y_type, {.batch_size = rows->size(), .epochs = 0}, {}});
      batches->loop.emplace(*this, *state_, rows, batches->options);
      // All workers now know the state that worker 0 may have restored.
      takes_batches = strategy_at_work(now).takes_batches;
    }
    if (takes_batches) result = batches->loop->step_on(x, y, learning_rate);
  });
  if (!takes_batches) check_takes_batches(now);
  batch_loop_ = std::move(batches);
  return result;
}

Evaluation Trainer::evaluate(data::DatasetPtr test, const data::Augmentation& augment,
                             int64_t batch_size, const TestProgress& progress, int64_t mistakes) {
  TrainerState& s = *state_;
  require(test->size() > 0, ErrorKind::invalid_argument,
          "evaluate: the data set has no samples, expected 1 or more");
  if (const auto result = evaluate_sparse(s, *test, augment)) return *result;
  const int64_t size = rows_at_a_time(std::min(batch_size, test->size()), test->layout());
  data::Loader loader(
      test,
      {.sampling = {.batch_size = size, .shuffle = false, .last_batch = data::LastBatch::keep},
       .augmentation = augment,
       .threads = 1,
       .epochs = 1});
  s.build(input_type(loader.layout()));
  if (!s.stages) s.fill();
  const std::unique_ptr<Evaluator> of_part =
      s.new_evaluator(target_type(loader.layout()), s.metrics_for(loader.layout()));
  Evaluator& evaluator = *of_part;
  s.parameters.touch();
  // Batches are assigned to workers round-robin, and sums are added in batch order, so the result
  // does not depend on the number of workers. Workers with parts of the network process all
  // batches.
  comm::Group* const group = s.alone || s.stages ? nullptr : s.cluster.group();
  const int64_t workers = group ? group->size() : 1, rank = group ? group->rank() : 0;
  const size_t width = 3 + evaluator.metrics().sums();  // loss, weight, samples, metrics
  const size_t most = std::max<size_t>(width, kMostSums / sizeof(double));
  std::vector<double> total(width), batches;
  TestRows rows(evaluator.metrics(), test->size());
  MistakeCollector collector(mistakes, loader.layout());
  Tensor answers;
  const auto add_batches = [&] {
    if (group)
      group->all_reduce(std::as_writable_bytes(std::span(batches)), comm::ElementType::f64, {},
                        {.label = "test sums"});
    for (size_t i = 0; i < batches.size(); ++i) total[i % width] += batches[i];
    batches.clear();
  };
  for (int64_t number = 0;; ++number) {
    const data::LoaderState place = {0, number * size};
    if (place.position >= test->size()) break;
    if (progress) progress(place.position, test->size());
    if (batches.size() + width > most && number % workers == 0) add_batches();
    batches.resize(batches.size() + width, 0);
    if (number % workers != rank) continue;
    const std::optional<data::Batch> batch =
        workers == 1 ? loader.next()
                     : loader.batch(place, 0, std::min(size, test->size() - place.position));
    const Evaluator::Sums sums =
        evaluator.evaluate(batch->x, batch->y, collector.wants_any() ? &answers : nullptr);
    if (collector.wants_any()) collector.add(*batch, answers);
    rows.add(place.position, sums);
    double* const own = &batches[batches.size() - width];
    own[0] = sums.loss;
    own[1] = sums.weight;
    own[2] = static_cast<double>(sums.samples);
    std::copy(sums.metrics.begin(), sums.metrics.end(), own + 3);
  }
  add_batches();
  Evaluation result = {.samples = static_cast<int64_t>(total[2])};
  result.mistakes = collector.gather(group);
  result.loss = total[0] / total[1];  // NaN if no label counts
  result.metrics = evaluator.metrics().values(std::span(total).subspan(3), rows.gather(group));
  if (const MetricValue* accuracy = find_metric(result.metrics, "accuracy")) {
    result.accuracy = accuracy->value;
    result.correct = static_cast<int64_t>(accuracy->sums[0]);
    result.labels = static_cast<int64_t>(accuracy->sums[1]);
  }
  return result;
}

Tensor Trainer::predict(const Tensor& x, std::string_view output) {
  TrainerState& s = *state_;
  require(x.shape().rank() > 0, ErrorKind::shape, "predict: got a single number, expected rows");
  Shape sample = x.shape();
  sample = Shape(std::vector<int64_t>(sample.extents().begin() + 1, sample.extents().end()));
  s.build({x.dtype(), sample});
  if (!s.stages) s.fill();
  if (!s.predictor) s.predictor = s.new_evaluator({}, {});
  s.parameters.touch();
  return s.predictor->predict(x, output);
}

bool Trainer::divided_for_predictions() const { return state_->stages != nullptr; }

void Trainer::divide_for_predictions() {
  TrainerState& s = *state_;
  if (!s.cluster.group()) return;
  require(s.first_values.pending() && s.step == 0, ErrorKind::invalid_argument,
          "divide_for_predictions: this worker already has the whole network; call it after "
          "build and load_weights, and before anything else");
  s.drop_quantised();
  s.stages = std::make_unique<ForwardPipeline>(*s.cluster.group(), [&s](const std::string& name) {
    s.first_values.set(s.parameters.entry(name), s.parameters);
  });
}

}  // namespace artel
