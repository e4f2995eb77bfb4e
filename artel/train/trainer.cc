#include "artel/train/trainer.h"

#include <algorithm>
#include <optional>

#include "artel/data/loader.h"
#include "artel/predict/batches.h"
#include "artel/predict/evaluator.h"
#include "artel/predict/load_weights.h"
#include "artel/train/fit_loop.h"
#include "artel/train/trainer_state.h"

namespace artel {

Trainer::Trainer(Cluster& cluster, Model model, TrainerOptions options)
    : state_(std::make_unique<TrainerState>(cluster, std::move(model), std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::build(const TensorType& sample) { state_->build(sample); }
bool Trainer::built() const { return state_->built; }
Parameters& Trainer::parameters() { return state_->parameters; }
NamedTensors Trainer::weights() const { return state_->checkpoint().weights; }
const KernelChoices& Trainer::choices() const { return state_->choices; }
void Trainer::load_weights(const NamedTensors& weights,
                           const std::function<bool(const std::string&)>& wanted) {
  artel::load_weights(state_->parameters, weights, wanted);
}
checkpoint::Checkpoint Trainer::checkpoint() const { return state_->checkpoint(); }
void Trainer::restore(const checkpoint::Checkpoint& checkpoint) { state_->restore(checkpoint); }
void Trainer::request_stop() { state_->stop = true; }

FitResult Trainer::fit(Tensor x, Tensor y, const FitOptions& options) {
  return fit(data::tensor_dataset(std::move(x), std::move(y)), options);
}

FitResult Trainer::fit(data::DatasetPtr train, const FitOptions& options) {
  std::optional<FitLoop> loop;  // outlives the attempt, whose failure ends what it has started
  FitResult result;
  state_->cluster.attempt([&] {
    loop.emplace(*this, *state_, std::move(train), options);
    result = loop->run();
  });
  return result;
}

Evaluation Trainer::evaluate(data::DatasetPtr test, const data::Augmentation& augment,
                             int64_t batch_size) {
  TrainerState& s = *state_;
  require(test->size() > 0, ErrorKind::invalid_argument,
          "evaluate: the data set has no samples, expected 1 or more");
  const int64_t size = std::min(batch_size, test->size());
  data::Loader loader(
      test,
      {.sampling = {.batch_size = size, .shuffle = false, .last_batch = data::LastBatch::keep},
       .augmentation = augment,
       .threads = 1,
       .epochs = 1});
  s.build(input_type(loader.layout()));
  Evaluator evaluator(s.model, s.sample, target_type(loader.layout()), s.test_loss, s.parameters,
                      s.choices, s.threads);
  // Workers take batches in turn; sums are added in the order of batches, so that the result does
  // not depend on the number of workers.
  comm::Group* const group = s.alone ? nullptr : s.cluster.group();
  const int64_t workers = group ? group->size() : 1, rank = group ? group->rank() : 0;
  std::vector<double> losses, counts;  // of each batch: loss; right answers, samples, labels
  for (int64_t number = 0;; ++number) {
    const data::LoaderState place = {0, number * size};
    if (place.position >= test->size()) break;
    losses.push_back(0);
    counts.resize(counts.size() + 3, 0);
    if (number % workers != rank) continue;
    const std::optional<data::Batch> batch =
        workers == 1 ? loader.next()
                     : loader.batch(place, 0, std::min(size, test->size() - place.position));
    const Evaluator::Sums sums = evaluator.evaluate(batch->x, batch->y);
    losses.back() = sums.loss;
    counts[counts.size() - 3] = static_cast<double>(sums.correct);
    counts[counts.size() - 2] = static_cast<double>(sums.samples);
    counts[counts.size() - 1] = static_cast<double>(count_labels(batch->y));
  }
  if (group) {
    group->all_reduce(std::as_writable_bytes(std::span(losses)), comm::ElementType::f64, {},
                      {.label = "test losses"});
    group->all_reduce(std::as_writable_bytes(std::span(counts)), comm::ElementType::f64, {},
                      {.label = "test counts"});
  }
  Evaluation result;
  for (size_t i = 0; i < losses.size(); ++i) {
    result.loss += losses[i];
    result.correct += static_cast<int64_t>(counts[3 * i]);
    result.samples += static_cast<int64_t>(counts[3 * i + 1]);
    result.labels += static_cast<int64_t>(counts[3 * i + 2]);
  }
  result.loss /= static_cast<double>(std::max<int64_t>(1, result.samples));
  result.accuracy = static_cast<double>(result.correct) /
                    static_cast<double>(std::max<int64_t>(1, result.labels));
  return result;
}

Tensor Trainer::predict(const Tensor& x) {
  TrainerState& s = *state_;
  Shape sample = x.shape();
  sample = Shape(std::vector<int64_t>(sample.extents().begin() + 1, sample.extents().end()));
  s.build({x.dtype(), sample});
  if (!s.predictor)
    s.predictor = std::make_unique<Evaluator>(s.model, s.sample, std::nullopt, s.test_loss,
                                              s.parameters, s.choices, s.threads);
  return s.predictor->predict(x);
}

}  // namespace artel
