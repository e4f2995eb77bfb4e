#include "artel/shrink/shrink_run.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/predict/batches.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/run.h"
#include "artel/shrink/prune_run.h"
#include "artel/shrink/quantise_run.h"
#include "artel/shrink/removable_units.h"
#include "artel/shrink/result_folder.h"

namespace artel::shrink {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTimedRows = 64;
constexpr int kTimings = 5;

// Parses the number in "<number><rest>". Empty if the phrase has another form.
std::optional<double> number_before(std::string_view phrase, std::string_view rest) {
  if (!phrase.ends_with(rest)) return {};
  const std::string_view text = trim(phrase.substr(0, phrase.size() - rest.size()));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

void read_phrase(std::string_view phrase, ShrinkTarget& target) {
  constexpr std::string_view kMost = "at most ";
  if (const auto times = number_before(phrase, "x smaller"); times && *times >= 1) {
    target.smaller = *times;
  } else if (const auto fast = number_before(phrase, "x faster"); fast && *fast >= 1) {
    target.faster = *fast;
  } else {
    const std::string_view left =
        phrase.starts_with(kMost) ? phrase.substr(kMost.size()) : std::string_view();
    for (const std::string_view unit : {" point worse", " points worse", "% worse", " % worse"})
      if (const auto worse = number_before(left, unit); worse && *worse >= 0) {
        target.worse = *worse;
        return;
      }
    fail(ErrorKind::invalid_argument,
         "--target: got '{}', expected '4x smaller', '2x faster' or 'at most 1 point worse'",
         phrase);
  }
}

// The input on which every candidate is timed.
Tensor timed_rows(const SavedRun& run) {
  const TensorType type = batch_of(run.sample(), kTimedRows);
  Tensor rows(type.shape, type.dtype);
  Random random{1};
  if (type.dtype == DType::i32) {
    const auto tokens = static_cast<uint64_t>(std::max<int64_t>(2, run.layout.classes));
    for (int32_t& token : rows.values<int32_t>())
      token = static_cast<int32_t>(random.below(tokens));
  } else {
    for (float& value : rows.values<float>()) value = random.normal();
  }
  return rows;
}

double median_seconds(const SavedRun& run, const Tensor& rows) {
  std::vector<double> seconds;
  for (int i = 0; i <= kTimings; ++i) {
    const Clock::time_point begin = Clock::now();
    run.trainer->predict(rows);
    if (i > 0) seconds.push_back(seconds_between(begin, Clock::now()));  // the first one compiles
  }
  std::ranges::nth_element(seconds, seconds.begin() + kTimings / 2);
  return seconds[kTimings / 2];
}

size_t bytes_of_weights(const NamedTensors& weights) {
  size_t bytes = 0;
  for (const NamedTensor& weight : weights) bytes += weight.tensor.bytes();
  return bytes;
}

class Combinations {
 public:
  Combinations(const ShrinkRunOptions& options, std::string folder)
      : options_(options),
        folder_(std::move(folder)),
        original_(open_run(options.source)),
        rows_(timed_rows(original_)) {}

  std::vector<Candidate> operator()() {
    const std::string& source = options_.source.path;
    require(original_.config.model.adapters.empty(), ErrorKind::unsupported,
            "[{}] has adapters; merge them first: artel adapters {} -o merged.safetensors", source,
            source);
    Candidate fp32 = {.folder = source};
    fp32.quality = quality_of(original_, source);
    warn_of_few_samples(fp32.quality);
    fp32.bytes = bytes_of_weights(original_.trainer->weights());
    add(fp32);
    add_small_weights(fp32);
    const bool removable = std::ranges::any_of(
        units_of(make_model(original_.config.model, original_.layout), original_.sample()),
        [&](const UnitsOfLayer& layer) { return layer.kept_because.empty(); });
    if (!removable) log(LogLevel::info, "no layer has units that can be removed");
    for (const double share : options_.units)
      if (removable) add_pruned(share);
    return std::move(all_);
  }

 private:
  std::string new_folder(const std::string& name) const {
    return (fs::path(folder_) / "candidates" / name).string();
  }

  // Times the original again next to the candidate, so that a change in machine load affects both.
  void measure_speed(const SavedRun& run, Candidate& candidate) const {
    const double before = median_seconds(original_, rows_);
    candidate.faster = before / median_seconds(run, rows_);
  }

  void add(Candidate candidate) {
    if (!all_.empty()) {
      candidate.smaller = static_cast<double>(all_[0].bytes) / static_cast<double>(candidate.bytes);
      candidate.lost = lost(all_[0].quality, candidate.quality);
    }
    if (options_.after_each) options_.after_each(candidate);
    all_.push_back(std::move(candidate));
  }

  void add_pruned(double share) {
    Candidate candidate = {.units = share};
    candidate.folder = new_folder(fmt::format("units-{:.0f}", 100 * share));
    const PrunedRun pruned = prune_run(
        {.source = options_.source, .units = share, .keep = options_.keep, .evaluate = false});
    std::vector<std::string> overrides = {
        "distil.teachers=" + toml_value(std::vector{fs::absolute(options_.source.path).string()}),
        "cluster.workers=1"};
    overrides.insert(overrides.end(), options_.overrides.begin(), options_.overrides.end());
    const std::string config =
        prepare_finetuning(pruned, options_.epochs, candidate.folder, overrides);
    artel::Run(config, RunOptions{.out = candidate.folder, .quiet = true}).train();
    const SavedRun run = open_run({.path = candidate.folder});
    candidate.quality = quality_of(run, candidate.folder);
    candidate.bytes = bytes_of_weights(run.trainer->weights());
    measure_speed(run, candidate);
    add(candidate);
    add_small_weights(candidate);
  }

  void add_small_weights(const Candidate& fp32) {
    for (const int bits : {8, 4}) {
      const RunSource source = {.path = fp32.folder};
      const QuantisedRun small = quantise_run({.source = fp32.units > 0 ? source : options_.source,
                                               .form = {.bits = bits},
                                               .keep_float = options_.keep});
      const bool any = std::ranges::any_of(
          small.small.matrices, [](const ShrunkWeight& each) { return each.left.empty(); });
      if (!any) return;
      Candidate candidate = fp32;
      candidate.bits = bits;
      candidate.folder = new_folder(fmt::format("units-{:.0f}-int{}", 100 * fp32.units, bits));
      candidate.bytes = bytes_of_weights(small.small.weights);
      candidate.quality = small.after;
      fs::create_directories(fs::path(candidate.folder).parent_path());
      save_quantised(small, fp32.units > 0 ? source : options_.source, candidate.folder);
      measure_speed(open_run({.path = candidate.folder}), candidate);
      add(candidate);
    }
  }

  const ShrinkRunOptions& options_;
  const std::string folder_;
  SavedRun original_;
  Tensor rows_;
  std::vector<Candidate> all_;
};

}  // namespace

ShrinkTarget parse_target(const std::string& text) {
  ShrinkTarget target;
  for (const std::string& phrase : split(text, ',')) read_phrase(trim(phrase), target);
  return target;
}

std::string Candidate::name() const {
  const std::string left =
      units > 0 ? fmt::format("{:.0f} % of the units removed", 100 * units) : "";
  const std::string weights = bits > 0 ? fmt::format("int{} weights", bits) : "";
  if (left.empty() && weights.empty()) return "original";
  return left + (left.empty() || weights.empty() ? "" : ", ") + weights;
}

bool meets(const Candidate& candidate, const ShrinkTarget& target) {
  return candidate.smaller >= target.smaller && candidate.faster >= target.faster &&
         (!target.worse || candidate.lost <= *target.worse);
}

const Candidate* best_of(const std::vector<Candidate>& candidates, const ShrinkTarget& target) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!meets(candidate, target)) continue;
    if (!best || candidate.lost < best->lost ||
        (candidate.lost == best->lost && candidate.faster > best->faster))
      best = &candidate;
  }
  return best;
}

std::vector<Candidate> try_combinations(const ShrinkRunOptions& options,
                                        const std::string& folder) {
  check_free(folder);
  return Combinations(options, folder)();
}

void keep_candidate(const Candidate& candidate, const std::string& folder) {
  const fs::path below = fs::path(folder) / "candidates";
  for (const fs::directory_entry& entry : fs::directory_iterator(candidate.folder))
    fs::rename(entry.path(), fs::path(folder) / entry.path().filename());
  fs::remove_all(below);
}

}  // namespace artel::shrink
