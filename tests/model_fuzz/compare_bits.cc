// One case with other threads, less memory, other workers, and once more.
#include <fmt/format.h>

#include "artel/base/error.h"
#include "artel/data/dataset.h"
#include "artel/plan/schedule.h"
#include "artel/train/strategies/pipeline.h"
#include "tests/model_fuzz/check.h"
#include "tests/model_fuzz/training.h"
#include "tests/unit/train/workers.h"

namespace artel::model_fuzz {
namespace {

// The bits after all steps, or the message of the error that ended them.
struct Outcome {
  std::vector<float> bits;
  std::string error;
  bool operator==(const Outcome& other) const {
    return error == other.error && same_bits(bits, other.bits);
  }
};

// With `evaluated` the bits of an evaluation belong to it.
Outcome outcome(const NetworkCase& network, const Setting& setting, bool evaluated = false) {
  Training training(network, setting);
  try {
    for (int64_t step = 0; step < network.steps; ++step) training.step();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::memory || error.kind() == ErrorKind::internal) throw;
    return {{}, error.what()};
  }
  Outcome result = {training.bits(), {}};
  if (!evaluated) return result;
  for (const auto& [name, output] : training.evaluate())
    for (const double value : output.data) result.bits.push_back(static_cast<float>(value));
  return result;
}

}  // namespace

std::optional<std::string> compare_bits(const NetworkCase& network) {
  const auto threads = static_cast<int>(network.threads);
  const Outcome expected = outcome(network, {});
  const auto differs = [&](const Setting& setting) {
    return !(outcome(network, setting) == expected);
  };
  if (differs({})) return "a second run has other bits";
  if (differs({.check_memory = true})) return "with marked memory the bits are others";
  if (threads > 1 && !(outcome(network, {.threads = threads}, true) == outcome(network, {}, true)))
    return fmt::format("{} threads give other bits than one", threads);
  if (!network.limit_memory) return std::nullopt;
  const size_t bytes = Training(network, {}).activation_bytes();
  for (const double share : kMemoryShares) {
    try {
      if (differs({.threads = threads,
                   .memory_limit = static_cast<size_t>(share * static_cast<double>(bytes)),
                   .check_memory = true}))
        return fmt::format("with {} of the memory the bits are others", share);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
    }
  }
  return std::nullopt;
}

std::optional<std::string> compare_workers(const NetworkCase& network) {
  const Tensor x = network.all_inputs(), y = network.all_targets();
  // Weights, and what an evaluation gives.
  const auto trained = [&](Cluster& cluster, const PipelineOptions& pipeline = {}) {
    Trainer trainer(cluster, network.model(),
                    {.optimizer = optim::optimizer_from_options(network.optimizer),
                     .loss = network.loss,
                     .metrics = metrics_by_name(network.metrics),
                     .label_smoothing = network.label_smoothing,
                     .seed = network.seed,
                     .threads = 1,
                     .lanes = static_cast<int>(network.lanes),
                     .exact_convolutions = network.exact_convolutions,
                     .freeze = network.freeze,
                     .strategy_options = {pipeline}});
    trainer.fit(
        x, y,
        {.batch_size = network.batch, .keep_last_batch = network.last_batch > 0, .epochs = 2});
    std::vector<float> result = flat(trainer.weights());
    const Evaluation evaluation =
        trainer.evaluate(data::tensor_dataset(x, y), {}, std::max<int64_t>(1, network.batch - 1));
    result.push_back(static_cast<float>(evaluation.loss));
    for (const MetricValue& metric : evaluation.metrics)
      for (const double sum : metric.sums) result.push_back(static_cast<float>(sum));
    return result;
  };
  std::vector<float> expected;
  try {
    Cluster alone;
    expected = trained(alone);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) throw;
    return std::nullopt;  // an infinite loss ends all of them
  }
  std::vector<std::string> wrong(static_cast<size_t>(network.workers));
  const std::vector<std::string> schedules = plan::schedule_names();
  const PipelineOptions pipeline = {.pipeline = network.workers,
                                    .schedule = schedules[network.seed % schedules.size()]};
  for (const PipelineOptions& options : {PipelineOptions(), pipeline})
    on_workers(static_cast<int>(network.workers), [&](int rank, Cluster& cluster) {
      if (!same_bits(trained(cluster, options), expected))
        wrong[static_cast<size_t>(rank)] =
            fmt::format("worker {} of {} in pipelines of {} has other bits than one alone", rank,
                        network.workers, options.pipeline);
    });
  for (const std::string& text : wrong)
    if (!text.empty()) return text;
  return std::nullopt;
}

}  // namespace artel::model_fuzz
