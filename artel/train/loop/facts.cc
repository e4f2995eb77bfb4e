#include "artel/train/loop/facts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/data/tables/sparse_rows.h"
#include "artel/train/step/teacher.h"
#include "artel/train/strategies/registry.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

std::string text_of(bool value) { return value ? "yes" : "no"; }
std::string text_of(const std::string& value) { return value; }
std::string text_of(const std::vector<std::string>& values) { return join(values, ", "); }
std::string text_of(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name);
  return join(names, ", ");
}
template <typename T>
std::string text_of(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "none";
}
template <typename T>
requires std::is_arithmetic_v<T> std::string text_of(T value) { return fmt::format("{}", value); }

// Members that may differ between workers: they change no bits, or worker 0 decides for all.
void may_differ(const auto&...) {}

void add(Facts& facts, const std::string& prefix, const optim::Options& options) {
  for (const auto& [key, value] : options) facts.emplace_back(prefix + key, value);
}

std::string content_of(const data::Dataset& set, int64_t sample) {
  if (const data::SparseRows* const rows = set.sparse()) {
    data::SparseSample sparse;
    rows->read(sample, sparse);
    return fmt::format("{}: {} {}", sparse.target, fmt::join(sparse.features, " "),
                       fmt::join(sparse.values, " "));
  }
  const data::SampleLayout& layout = set.layout();
  std::string bytes(layout.input_bytes() + layout.target_bytes(), '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
  set.read(sample, all.first(layout.input_bytes()), all.subspan(layout.input_bytes()));
  return bytes;
}

}  // namespace

Facts facts_of(const TrainerOptions& options) {
  const auto& [optimizer, schedule, loss, metrics, label_smoothing, class_weights, seed, threads,
               device, device_timeout, lanes, tune, exact_convolutions, precision, memory_limit,
               worker_memory, bucket_bytes, check_numbers, check_memory, freeze, strategy,
               strategy_options, teacher, pruning] = options;
  const auto& [keep_zeros, pruned, together, begin, end, every] = pruning;
  // Worker 0 chooses tuned kernels for all. Recomputing to save memory gives the same bits. The
  // facts of the run describe the device.
  may_differ(threads, device, device_timeout, tune, memory_limit, worker_memory);
  Facts facts = {
      {"loss", loss_name(loss)},
      {"metrics", text_of(metrics)},
      {"label_smoothing", text_of(label_smoothing)},
      {"class_weights", fmt::format("{}", fmt::join(class_weights, ", "))},
      {"seed", text_of(seed)},
      {"lanes", text_of(lanes)},
      {"exact_convolutions", text_of(exact_convolutions)},
      {"precision", text_of(precision)},
      {"bucket_bytes", text_of(bucket_bytes)},
      {"check_numbers", text_of(check_numbers)},
      {"check_memory", text_of(check_memory)},
      {"freeze", text_of(freeze)},
      {"strategy", text_of(strategy)},
      {"teacher", teacher ? teacher->identity() : "none"},
      {"pruning", fmt::format("keep_zeros {} weights {} global {} steps {} to {} every {}",
                              keep_zeros, pruned, together, begin, end, every)}};
  for (auto& value : strategy_values(strategy_options)) facts.push_back(std::move(value));
  add(facts, "optimizer.", optim::to_options(optimizer));
  add(facts, "schedule.", optim::to_options(schedule));
  return facts;
}

Facts facts_of(const FitOptions& options) {
  const auto& [batch_size, keep_last_batch, epochs, steps, augment, loader_threads, validation,
               enclosing_weights, mistakes, files, others, target_accuracy, patience, max_seconds,
               best_by, noise_every, checkpoints, identity, save_every, keep_last,
               checkpoint_copies, before_copying, resume, gather_network, timeline, before_leading,
               after_leading, before_membership, before_save, while_testing, after_step,
               after_epoch, before_following, after_trace] = options;
  // Only worker 0 reads and writes checkpoints. Results of callbacks are shared with all workers.
  may_differ(loader_threads, enclosing_weights, files, before_copying, checkpoints, identity,
             keep_last, resume, before_leading, after_leading, before_membership, before_save,
             while_testing, after_step, after_epoch, before_following, after_trace);
  const auto& [transforms, mixup] = augment;
  std::vector<std::string> steps_of_augmentation;
  for (const data::Transform& transform : transforms)
    steps_of_augmentation.push_back(transform.text);
  Facts facts = {{"batch_size", text_of(batch_size)},
                 {"keep_last_batch", text_of(keep_last_batch)},
                 {"epochs", text_of(epochs)},
                 {"steps", text_of(steps)},
                 {"augment", text_of(steps_of_augmentation)},
                 {"mixup", text_of(mixup)},
                 {"mistakes", text_of(mistakes)},
                 {"target_accuracy", text_of(target_accuracy)},
                 {"patience", text_of(patience)},
                 {"max_seconds", text_of(max_seconds)},
                 {"best_by", text_of(best_by)},
                 {"noise_every", text_of(noise_every)},
                 {"save_every", text_of(save_every)},
                 {"checkpoint_copies", text_of(checkpoint_copies)},
                 {"gather_network", text_of(gather_network)},
                 {"timeline", text_of(timeline)}};
  for (const Facts& part : {facts_of("validation", validation.get()), others})
    facts.insert(facts.end(), part.begin(), part.end());
  return facts;
}

Facts facts_of(const std::string& name, const data::Dataset* set) {
  constexpr int64_t kSamples = 16;
  const int64_t size = set ? set->size() : 0;
  Facts facts = {{name + " samples", text_of(size)}};
  if (size == 0) return facts;
  const data::SampleLayout& layout = set->layout();
  facts.emplace_back(name + " inputs", to_string(input_type(layout)));
  facts.emplace_back(name + " targets", to_string(TensorType{layout.target_type(), layout.target}));
  facts.emplace_back(name + " classes", text_of(layout.classes));
  const int64_t count = std::min(size, kSamples);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sample = count == 1 ? 0 : i * (size - 1) / (count - 1);
    facts.emplace_back(fmt::format("{} sample {}", name, sample),
                       fmt::format("{:016x}", hash_name(content_of(*set, sample))));
  }
  return facts;
}

Facts facts_of(const Stepper& stepper, const Parameters& parameters, int64_t lane_batch) {
  Facts facts;
  for (std::string& line : split(to_string(stepper.graph(lane_batch)), '\n'))
    if (!line.empty()) facts.emplace_back("network", std::move(line));
  for (const ParameterEntry& entry : parameters.entries())
    facts.emplace_back(fmt::format("parameter '{}'", entry.name),
                       fmt::format("{} in order [{}]", to_string(entry.shape),
                                   fmt::join(entry.layout.order, " ")));
  for (const SummedRegion::Part& part : stepper.region().parts())
    facts.emplace_back(fmt::format("sum of '{}'", part.name), fmt::format("byte {}", part.offset));
  for (const Bucket& bucket : stepper.region().buckets())
    facts.emplace_back("bucket", fmt::format("byte {}, {} bytes", bucket.offset, bucket.bytes));
  return facts;
}

}  // namespace artel
