#include "artel/transfer/contrastive.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/thread_pool.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/data/sampler.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/observe/progress.h"
#include "artel/optim/schedule.h"
#include "artel/predict/batches.h"
#include "artel/run/config/setup.h"
#include "artel/run/folder/fingerprint.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/trainer.h"

namespace artel::transfer {
namespace {

constexpr int64_t kViews = 64;  // views per batch, fixed so that bits do not depend on workers
constexpr double kLeast = 1e-12;

struct Rows {
  int64_t count, width;
  std::vector<double> unit;     // rows of length 1
  std::vector<double> lengths;  // original lengths
};

Rows unit_rows_of(const Tensor& rows) {
  require(rows.shape().rank() == 2, ErrorKind::shape,
          "contrastive: got outputs {}, expected a row of numbers for each view",
          to_string(rows.shape()));
  Rows result = {rows.shape()[0], rows.shape()[1], {}, {}};
  const auto values = rows.values<float>();
  result.unit.assign(values.begin(), values.end());
  for (int64_t i = 0; i < result.count; ++i) {
    double square = 0;
    for (int64_t j = 0; j < result.width; ++j) {
      const double value = result.unit[i * result.width + j];
      square += value * value;
    }
    const double length = std::max(std::sqrt(square), kLeast);
    for (int64_t j = 0; j < result.width; ++j) result.unit[i * result.width + j] /= length;
    result.lengths.push_back(length);
  }
  return result;
}

double product(const double* a, const double* b, int64_t width) {
  double sum = 0;
  for (int64_t j = 0; j < width; ++j) sum += a[j] * b[j];
  return sum;
}

// Converts the gradient with respect to unit rows to that with respect to the original rows.
Tensor through_scaling(const Rows& rows, const std::vector<double>& gradient) {
  Tensor result({rows.count, rows.width});
  for (int64_t i = 0; i < rows.count; ++i) {
    const double* const unit = rows.unit.data() + i * rows.width;
    const double* const given = gradient.data() + i * rows.width;
    const double along = product(unit, given, rows.width);
    for (int64_t j = 0; j < rows.width; ++j)
      result.values<float>()[i * rows.width + j] =
          static_cast<float>((given[j] - along * unit[j]) / rows.lengths[i]);
  }
  return result;
}

// True if training and inference compute the same outputs.
void check_network(const Model& model, const TensorType& sample) {
  Graph graph;
  nn::Build build(graph, true);
  const Value x = graph.input("x", batch_of(sample, 2));
  build.set_input("x", x);
  model.network()(build, x);
  for (const Node& node : graph.nodes())
    require(node.op->name != "batch_norm" && node.op->name != "dropout", ErrorKind::unsupported,
            "[layer '{}'] {}: outputs of views would differ from those of the step; use a network "
            "without it, with layer_norm for example",
            node.name, node.op->name);
}

// Two views of each sample: all first views, then all second views.
Tensor views_of(const data::Dataset& set, const data::Augmentation& augment,
                const std::vector<int64_t>& samples, uint64_t seed, int64_t epoch,
                ThreadPool& pool) {
  const data::SampleLayout& layout = set.layout();
  const auto count = std::ssize(samples);
  const TensorType type = sample_type(layout, augment);
  Tensor views(batch_of(type, 2 * count).shape, type.dtype);
  const int64_t each = type.shape.elements();
  parallel_for(pool, count, 1, [&](int64_t begin, int64_t end) {
    std::vector<std::byte> target(layout.target_bytes());
    for (int64_t i = begin; i < end; ++i) {
      data::Image image(layout.input[0], layout.input[1], layout.input[2]);
      set.read(samples[i], std::as_writable_bytes(std::span(image.pixels)), target);
      for (const int64_t view : {0, 1}) {
        data::Image changed = image;
        Random random{seed, hash_name("view"), static_cast<uint64_t>(epoch),
                      static_cast<uint64_t>(samples[i]), static_cast<uint64_t>(view)};
        augment.apply(changed, random);
        std::copy_n(changed.pixels.data(), each,
                    views.values<float>().data() + (view * count + i) * each);
      }
    }
  });
  return views;
}

// The outputs for all rows. Each worker computes a part of them.
Tensor outputs_of(Trainer& trainer, const Tensor& rows, Cluster& cluster) {
  comm::Group* const group = cluster.group();
  const int64_t count = rows.shape()[0];
  if (!group) return trainer.predict(rows);
  const int64_t chunks = (count + kViews - 1) / kViews;
  std::vector<int64_t> begins;
  for (int64_t rank = 0; rank <= group->size(); ++rank)
    begins.push_back(std::min(count, chunks * rank / group->size() * kViews));
  const int64_t begin = begins[group->rank()], end = begins[group->rank() + 1];
  Tensor own;
  if (end > begin) own = trainer.predict(rows.rows(begin, end).clone());
  // A worker without rows learns the width from the others.
  int64_t width = end > begin ? own.shape()[1] : 0;
  group->all_reduce(std::as_writable_bytes(std::span(&width, 1)), comm::ElementType::i64,
                    comm::ReductionKind::max, {.label = "width of outputs"});
  std::vector<size_t> sizes;
  for (int rank = 0; rank < group->size(); ++rank)
    sizes.push_back(static_cast<size_t>((begins[rank + 1] - begins[rank]) * width) * sizeof(float));
  Tensor all({count, width});
  group->all_gather({own.raw(), end > begin ? own.bytes() : 0}, {all.raw(), all.bytes()}, sizes,
                    {.label = "outputs of views"});
  return all;
}

// A queue of the newest keys, in a fixed order.
class Queue {
 public:
  explicit Queue(int64_t most) : most_(most) {}
  void add(const Tensor& keys) {
    width_ = keys.shape()[1];
    const auto values = keys.values<float>();
    values_.insert(values_.end(), values.begin(), values.end());
    const auto most = static_cast<size_t>(most_ * width_);
    if (values_.size() > most)
      values_.erase(values_.begin(), values_.end() - static_cast<std::ptrdiff_t>(most));
  }
  Tensor rows() const {
    if (values_.empty()) return Tensor({0, 1});
    return Tensor::from<float>({std::ssize(values_) / width_, width_}, values_);
  }

 private:
  int64_t most_, width_ = 1;
  std::vector<float> values_;
};

Loss product_loss() {
  return [](Value prediction, Value target) {
    return mul_scalar(sum(mul(prediction, target)),
                      1.0 / static_cast<double>(prediction.shape()[0]));
  };
}

}  // namespace

Tensor unit_rows(const Tensor& rows) {
  const Rows unit = unit_rows_of(rows);
  Tensor result(rows.shape());
  std::ranges::copy(unit.unit, result.values<float>().begin());
  return result;
}

ContrastiveLoss nt_xent(const Tensor& outputs, double temperature) {
  const Rows rows = unit_rows_of(outputs);
  const int64_t n = rows.count, width = rows.width, half = n / 2;
  require(n >= 4 && n % 2 == 0, ErrorKind::shape,
          "nt_xent: got {} rows, expected two views of two or more samples", n);
  // Row i of `shares`: the softmax of its similarities to all others.
  std::vector<double> shares(static_cast<size_t>(n * n));
  ContrastiveLoss result;
  for (int64_t i = 0; i < n; ++i) {
    double* const row = shares.data() + i * n;
    double most = -1e300;
    for (int64_t j = 0; j < n; ++j) {
      row[j] =
          product(rows.unit.data() + i * width, rows.unit.data() + j * width, width) / temperature;
      if (j != i) most = std::max(most, row[j]);
    }
    const int64_t other = (i + half) % n;
    const double wanted = row[other];
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      row[j] = j == i ? 0 : std::exp(row[j] - most);
      sum += row[j];
    }
    result.loss += (std::log(sum) + most - wanted) / static_cast<double>(n);
    for (int64_t j = 0; j < n; ++j) row[j] /= sum;
    row[other] -= 1;
  }
  std::vector<double> gradient(static_cast<size_t>(n * width));
  const double scale = 1 / (temperature * static_cast<double>(n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const double factor = scale * (shares[i * n + j] + shares[j * n + i]);
      for (int64_t k = 0; k < width; ++k)
        gradient[i * width + k] += factor * rows.unit[j * width + k];
    }
  result.gradient = through_scaling(rows, gradient);
  return result;
}

ContrastiveLoss momentum_contrast(const Tensor& outputs, const Tensor& keys, const Tensor& queue,
                                  double temperature) {
  const Rows rows = unit_rows_of(outputs);
  const int64_t n = rows.count, width = rows.width, known = queue.shape()[0];
  require(keys.shape() == outputs.shape() && (known == 0 || queue.shape()[1] == width),
          ErrorKind::shape, "momentum_contrast: got outputs {}, keys {} and a queue {}",
          to_string(outputs.shape()), to_string(keys.shape()), to_string(queue.shape()));
  const std::vector<double> wanted(keys.values<float>().begin(), keys.values<float>().end());
  const std::vector<double> others(queue.values<float>().begin(), queue.values<float>().end());
  ContrastiveLoss result;
  std::vector<double> gradient(static_cast<size_t>(n * width)), scores(static_cast<size_t>(known));
  const double scale = 1 / (temperature * static_cast<double>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double* const row = rows.unit.data() + i * width;
    const double right = product(row, wanted.data() + i * width, width) / temperature;
    double most = right;
    for (int64_t j = 0; j < known; ++j) {
      scores[j] = product(row, others.data() + j * width, width) / temperature;
      most = std::max(most, scores[j]);
    }
    double sum = std::exp(right - most);
    const double own = sum;
    for (double& score : scores) sum += score = std::exp(score - most);
    result.loss += (std::log(sum) + most - right) / static_cast<double>(n);
    for (int64_t k = 0; k < width; ++k)
      gradient[i * width + k] += scale * (own / sum - 1) * wanted[i * width + k];
    for (int64_t j = 0; j < known; ++j)
      for (int64_t k = 0; k < width; ++k)
        gradient[i * width + k] += scale * scores[j] / sum * others[j * width + k];
  }
  result.gradient = through_scaling(rows, gradient);
  return result;
}

namespace {

// The learning rate of each step; reduces it on a plateau of the training loss.
class LearningRate {
 public:
  LearningRate(const optim::ScheduleConfig& config, double rate, const optim::Horizon& horizon)
      : schedule_(config, rate, horizon) {
    const auto* const plateau = std::get_if<optim::Plateau>(&config.shape);
    if (!plateau) return;
    require(!plateau->maximize, ErrorKind::invalid_argument,
            "[schedule plateau] maximize: got true, but pretraining has no accuracy to watch; try "
            "false");
    plateau_.emplace(*plateau);
  }

  double at(int64_t step) const { return schedule_.at(step) * (plateau_ ? plateau_->factor() : 1); }
  void end_epoch(double loss) {
    if (plateau_) plateau_->observe(loss);
  }

 private:
  optim::Schedule schedule_;
  std::optional<optim::PlateauReducer> plateau_;
};

}  // namespace

PretrainResult pretrain(const RunConfig& config, Cluster& cluster, const PretrainOptions& options,
                        const std::filesystem::path& path) {
  const bool queue_of_keys = options.method == "moco";
  require(queue_of_keys || options.method == "simclr", ErrorKind::invalid_argument,
          "method: got '{}', expected simclr or moco", options.method);
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  require(layout.input.rank() == 3 && layout.input_type == DType::f32, ErrorKind::unsupported,
          "[{}] samples are {}, expected images, of which views can be made", config.data.set,
          to_string(layout.input));
  require(std::ranges::any_of(data.augment.transforms, &data::Transform::random),
          ErrorKind::invalid_argument,
          "data.augment: nothing in it is random, so both views of a sample would be the same; try "
          "[\"resized_crop {} 0.3\", \"flip\", \"jitter 0.4 0.4\"]",
          layout.input[1]);
  const TensorType sample = sample_type(layout, data.augment);
  const Model model = make_model(config.model, layout);
  check_network(model, sample);
  TrainerOptions trainer_options = artel::trainer_options(config, {});
  trainer_options.loss = product_loss();
  trainer_options.metrics.clear();
  const data::Sampler sampler(
      data.train->size(),
      {.batch_size = config.train.batch_size, .seed = static_cast<uint64_t>(config.train.seed)});
  const int64_t batches = sampler.batches_per_epoch();
  const int64_t steps = config.train.steps > 0 ? config.train.steps : config.train.epochs * batches;
  LearningRate rate(std::exchange(trainer_options.schedule, {}),
                    trainer_options.optimizer.learning_rate,
                    {steps, batches, config.train.batch_size});
  Trainer trainer(cluster, model, trainer_options);
  trainer.build(sample);
  load_configured_weights(trainer, config.model);
  Cluster alone;
  Trainer keys_of(alone, model, trainer_options);  // key encoder; follows the trained weights
  keys_of.build(sample);
  std::ranges::copy(trainer.parameters().block(), keys_of.parameters().block().begin());

  const auto seed = static_cast<uint64_t>(config.train.seed);
  ThreadPool pool(trainer_options.threads > 0 ? trainer_options.threads : cluster.cores());
  Queue queue(options.queue);
  observe::Progress progress;
  PretrainResult result;
  double sum = 0;
  int64_t counted = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t epoch = step / batches, at = step % batches * config.train.batch_size;
    if (at == 0) sum = static_cast<double>(counted = 0);
    const Tensor views =
        views_of(*data.train, data.augment,
                 sampler.samples(epoch, at, at + config.train.batch_size), seed, epoch, pool);
    const int64_t half = config.train.batch_size;
    Tensor x = views;
    ContrastiveLoss loss;
    if (queue_of_keys) {
      x = views.rows(0, half).clone();
      const Tensor keys = unit_rows(keys_of.predict(views.rows(half, 2 * half).clone()));
      loss = momentum_contrast(outputs_of(trainer, x, cluster), keys, queue.rows(),
                               options.temperature);
      queue.add(keys);
    } else {
      loss = nt_xent(outputs_of(trainer, x, cluster), options.temperature);
    }
    require(std::isfinite(loss.loss), ErrorKind::numeric, "step {}: the loss is {}", step + 1,
            loss.loss);
    // The step averages over rows, but the gradient is already that of the mean.
    for (float& value : loss.gradient.values<float>()) value *= static_cast<float>(x.shape()[0]);
    trainer.train_on_batch(x, loss.gradient, rate.at(step + 1));
    if (queue_of_keys) {
      const auto from = trainer.parameters().block();
      const auto to = keys_of.parameters().block();
      const auto keep = static_cast<float>(options.momentum);
      for (size_t i = 0; i < to.size(); ++i) to[i] = keep * to[i] + (1 - keep) * from[i];
    }
    sum += loss.loss;
    ++counted;
    result = {step + 1, sum / static_cast<double>(counted)};
    if ((step + 1) % batches == 0) rate.end_epoch(result.loss);
    if (options.after_step) options.after_step(step + 1, loss.loss);
    if (cluster.rank() > 0 || options.quiet) continue;
    progress.update({.epoch = epoch + 1,
                     .epochs = (steps + batches - 1) / batches,
                     .step = step + 1,
                     .steps = steps,
                     .samples = (step + 1) * half,
                     .loss = loss.loss});
    if ((step + 1) % batches == 0 || step + 1 == steps)
      progress.note(fmt::format("epoch {}: loss {:.4f}", epoch + 1, result.loss));
  }
  if (cluster.rank() > 0) return result;
  ClaimedFolder claimed =
      claim_folder({.config = {}, .out = path.string(), .name = {}, .resume = false});
  RunConfig with_lanes = config;
  with_lanes.cluster.lanes = trainer.lanes();
  write_file_atomically(claimed.folder.config(), to_toml(with_lanes));
  claimed.folder.save_layout(layout, fingerprint_of(config, data));
  checkpoint::save_checkpoint(claimed.folder.checkpoints(), trainer.checkpoint(), {.best = true});
  return result;
}

}  // namespace artel::transfer
