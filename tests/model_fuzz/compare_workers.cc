// Several workers compared with one. They are threads with a group and a trainer each.
#include <fmt/format.h>

#include <mutex>

#include "artel/base/error.h"
#include "artel/data/dataset.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/moving_lanes.h"
#include "tests/model_fuzz/training.h"
#include "tests/unit/train/workers.h"

namespace artel::model_fuzz {
namespace {

// Samples of which some labels are ignored, as padded lines of text have them.
class MaskedSamples final : public data::Dataset {
 public:
  MaskedSamples(const Tensor& x, const Tensor& y) : y_(y), others_(without_mask(x, y)) {}
  int64_t size() const override { return others_->size(); }
  const data::SampleLayout& layout() const override { return others_->layout(); }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    others_->read(index, input, target);
    std::copy_n(y_.raw() + index * static_cast<int64_t>(target.size()), target.size(),
                target.data());
  }

 private:
  static data::DatasetPtr without_mask(const Tensor& x, const Tensor& y) {
    Tensor labels = y.clone();
    for (int32_t& label : labels.values<int32_t>()) label = std::max(label, 0);
    return data::tensor_dataset(x, labels);
  }

  Tensor y_;
  data::DatasetPtr others_;
};

// A training by one worker or as one of several.
struct Trained {
  std::vector<float> weights;
  std::vector<float> steps;       // loss and metrics of each
  std::vector<float> evaluation;  // loss and sums of metrics
};

// The first part of `a` that has other bits than `b`, or nothing.
std::optional<std::string> difference(const Trained& a, const Trained& b) {
  if (!same_bits(a.weights, b.weights)) return "weights";
  if (!same_bits(a.steps, b.steps)) return "losses and metrics of steps";
  if (!same_bits(a.evaluation, b.evaluation)) return "losses and metrics of an evaluation";
  return std::nullopt;
}

struct Run {
  MeshSetting mesh;
  size_t memory_limit = 0;
  int64_t threads = 1;  // the most of a worker
};

class WorkersComparison {
 public:
  explicit WorkersComparison(const NetworkCase& network)
      : network_(network), x_(network.all_inputs()), set_(samples()) {}

  std::optional<std::string> run() {
    const std::optional<Trained> one = alone();
    if (!one) return std::nullopt;
    const std::vector<Trained> all = together(false);
    if (network_.mesh.is_exact()) return wrong_among(all, *one, "one alone");
    // Workers that train apart for a while have losses of their own.
    Trained first = all[0];
    std::vector<Trained> others = all;
    for (Trained& other : others) other.steps = first.steps;
    if (auto wrong = wrong_among(others, first, "worker 0")) return wrong;
    return wrong_among(together(true), first, "worker 0 of a run that was not resumed", true);
  }

  // Those that are resumed after the first epoch.
  std::optional<std::string> resumed() {
    const std::optional<Trained> one = alone();
    if (!one) return std::nullopt;
    return wrong_among(together(true), *one, "one alone that was not resumed");
  }

 private:
  data::DatasetPtr samples() const {
    const Tensor y = network_.all_targets();
    if (network_.ignored || network_.lines) return std::make_shared<MaskedSamples>(x_, y);
    return data::tensor_dataset(x_, y);
  }

  FitOptions fit_options() const {
    return {.batch_size = network_.batch,
            .keep_last_batch = network_.last_batch > 0,
            .epochs = 2,
            .steps = 2 * network_.steps};
  }

  // Workers may have different numbers of threads, except those that share a layer.
  static int threads_of(const Run& run, int rank) {
    const int64_t fewer = run.mesh.tensor == 1 ? rank % run.threads : 0;
    return static_cast<int>(run.threads - fewer);
  }

  TrainerOptions trainer_options(const Run& run, int rank) const {
    return {.optimizer = optim::optimizer_from_options(network_.optimizer),
            .schedule = optim::schedule_from_options({{"name", network_.schedule}}),
            .loss = network_.loss,
            .metrics = metrics_by_name(network_.metrics),
            .label_smoothing = network_.label_smoothing,
            .class_weights = network_.class_weights,
            .seed = network_.seed,
            .threads = threads_of(run, rank),
            .lanes = static_cast<int>(network_.lanes),
            .exact_convolutions = network_.exact_convolutions,
            .memory_limit = run.memory_limit,
            .bucket_bytes = static_cast<size_t>(run.mesh.bucket_bytes),
            .freeze = network_.freeze,
            .strategy = run.mesh.strategy,
            .strategy_options = run.mesh.options()};
  }

  // Trains from `begun`, if given, up to `steps`, and returns the result.
  Trained train(Cluster& cluster, const Run& run, int64_t steps,
                checkpoint::Checkpoint* begun = nullptr,
                checkpoint::Checkpoint* end = nullptr) const {
    Trainer trainer(cluster, network_.model(), trainer_options(run, cluster.rank()));
    if (begun) {
      trainer.build(network_.x());
      if (cluster.rank() == 0) trainer.restore(*begun);
    }
    Trained result;
    FitOptions fit = fit_options();
    fit.steps = steps;
    fit.after_step.push_back([&](const TrainingState& state) {
      result.steps.push_back(static_cast<float>(state.loss));
      for (const MetricValue& metric : state.metrics)
        for (const double sum : metric.sums) result.steps.push_back(static_cast<float>(sum));
      move_lanes(network_.seed, state.step);
      return true;
    });
    trainer.fit(set_, fit);
    if (end) {
      checkpoint::Checkpoint state = trainer.checkpoint();
      if (cluster.rank() == 0) *end = std::move(state);
      return result;
    }
    result.weights = flat(trainer.weights());
    const Evaluation evaluation =
        trainer.evaluate(set_, {}, std::max<int64_t>(1, network_.batch - 1));
    result.evaluation.push_back(static_cast<float>(evaluation.loss));
    for (const MetricValue& metric : evaluation.metrics)
      for (const double sum : metric.sums) result.evaluation.push_back(static_cast<float>(sum));
    return result;
  }

  // Nothing if the loss becomes infinite, which ends all of them.
  std::optional<Trained> alone() const {
    try {
      Cluster cluster;
      return train(cluster, {network_.mesh.alone()}, fit_options().steps);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      return std::nullopt;
    }
  }

  // All workers, under the tightest limit of memory that fits, if there is one; stopped and resumed
  // after an epoch, if wanted.
  std::vector<Trained> together(bool resumes) const {
    if (!network_.limit_memory) return together(resumes, 0);
    const size_t bytes = Training(network_, {}).activation_bytes();
    for (size_t i = network_.seed % kMeshMemoryShares.size(); i < kMeshMemoryShares.size(); ++i) {
      try {
        return together(resumes,
                        static_cast<size_t>(kMeshMemoryShares[i] * static_cast<double>(bytes)));
      } catch (const MemoryLimitError&) {
        continue;
      }
    }
    return together(resumes, 0);
  }

  std::vector<Trained> together(bool resumes, size_t limit) const {
    const Run run = {network_.mesh, limit, network_.threads};
    const int64_t steps = fit_options().steps;
    std::vector<Trained> all(static_cast<size_t>(network_.workers));
    if (!resumes) {
      on_all(network_.workers, run.mesh.servers,
             [&](size_t rank, Cluster& cluster) { all[rank] = train(cluster, run, steps); });
      return all;
    }
    checkpoint::Checkpoint half;
    on_all(network_.workers, run.mesh.servers, [&](size_t rank, Cluster& cluster) {
      all[rank] = train(cluster, run, network_.steps, nullptr, &half);
    });
    const std::vector<float> before = all[0].steps;  // of exact runs, those of all
    all.resize(static_cast<size_t>(network_.resumed_workers > 0 ? network_.resumed_workers
                                                                : network_.workers));
    on_all(std::ssize(all), run.mesh.servers, [&](size_t rank, Cluster& cluster) {
      Trained rest = train(cluster, run, steps, &half);
      rest.steps.insert(rest.steps.begin(), before.begin(), before.end());
      all[rank] = std::move(rest);
    });
    return all;
  }

  // Among several errors, a limit that is too low is the cause of the others.
  static void on_all(int64_t workers, int64_t servers,
                     const std::function<void(size_t rank, Cluster&)>& body) {
    std::mutex mutex;
    std::optional<MemoryLimitError> too_low;
    try {
      const auto work = [&](int rank, Cluster& cluster) {
        try {
          body(static_cast<size_t>(rank), cluster);
        } catch (const MemoryLimitError& error) {
          const std::lock_guard lock(mutex);
          too_low = error;
          throw;
        }
      };
      on_workers(static_cast<int>(workers), work, static_cast<int>(servers));
    } catch (const Error&) {
      if (too_low) throw *too_low;
      throw;
    }
  }

  std::optional<std::string> wrong_among(const std::vector<Trained>& all, const Trained& expected,
                                         const std::string& than, bool only_weights = false) const {
    for (size_t rank = 0; rank < all.size(); ++rank) {
      std::optional<std::string> what = difference(all[rank], expected);
      if (only_weights && what && what != "weights") what.reset();
      if (what)
        return fmt::format("the {} of worker {} of {} have other bits than those of {}", *what,
                           rank, all.size(), than);
    }
    return std::nullopt;
  }

  const NetworkCase& network_;
  const Tensor x_;
  const data::DatasetPtr set_;
};

bool is_refusal(ErrorKind kind) {
  return kind == ErrorKind::invalid_argument || kind == ErrorKind::unsupported ||
         kind == ErrorKind::shape;
}

}  // namespace

std::optional<std::string> compare_workers(const NetworkCase& network) {
  WorkersComparison comparison(network);
  try {
    if (auto wrong = comparison.run()) return wrong;
    return network.resumed_workers > 0 ? comparison.resumed() : std::nullopt;
  } catch (const Error& error) {
    if (is_refusal(error.kind())) throw;
    return fmt::format("{} workers stop: {}", network.workers, error.what());
  }
}

}  // namespace artel::model_fuzz
