#include "artel/transfer/advise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/base/time.h"
#include "artel/exec/libraries.h"
#include "artel/observe/table.h"
#include "artel/observe/text_plot.h"
#include "artel/run/folder/saved_run.h"
#include "artel/transfer/finetune.h"
#include "artel/transfer/log_me.h"
#include "artel/transfer/small_model.h"

namespace artel::transfer {
namespace {

constexpr size_t kMostProbes = 8;

// The blocks before the head. Of many blocks, an evenly spread selection that includes the last.
std::vector<Block> probed_blocks(std::vector<Block> blocks) {
  blocks.pop_back();
  if (blocks.size() <= kMostProbes) return blocks;
  std::vector<Block> some;
  for (size_t i = 1; i <= kMostProbes; ++i)
    some.push_back(blocks[i * blocks.size() / kMostProbes - 1]);
  return some;
}

FeaturePart some_of(const FeaturePart& part, size_t layer, const std::vector<int64_t>& chosen) {
  const Tensor& from = part.layers[layer];
  const int64_t width = from.elements() / part.size();
  FeaturePart result;
  Tensor rows({std::ssize(chosen), width}), labels({std::ssize(chosen)}, DType::i32);
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(from.values<float>().data() + chosen[i] * width, width,
                rows.values<float>().data() + static_cast<int64_t>(i) * width);
    labels.values<int32_t>()[i] = part.targets.values<int32_t>()[chosen[i]];
  }
  result.layers = {rows};
  result.targets = labels;
  return result;
}

struct ProbeResult {
  double accuracy;
  double l2;  // chosen penalty
};

// Fits a linear model on some samples, on one thread, and evaluates it on others.
ProbeResult probe(const FeaturePart& all, size_t layer, const std::vector<int64_t>& train,
                  const std::vector<int64_t>& test, int64_t classes, std::vector<double> l2,
                  uint64_t seed) {
  Features features = {.classes = classes};
  features.train = some_of(all, layer, train);
  const SmallModel model = fit_small(
      "linear", features, {.seed = seed, .l2 = std::move(l2), .folds = 3, .least_gain = 1e-4});
  return {judge(model, some_of(all, layer, test), 1).accuracy, model.choice};
}

std::vector<int64_t> shuffled(int64_t count, uint64_t seed, uint64_t purpose) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  Random random{seed, hash_name("advise"), purpose};
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

// A split of the samples into training and evaluation.
struct HeldOut {
  std::vector<int64_t> train, test;
};

// Holds out a quarter. With few samples, each quarter in turn, so that all of them are evaluated.
std::vector<HeldOut> held_out_in_turn(int64_t samples, uint64_t seed) {
  constexpr int64_t kFew = 500, kParts = 4;
  const std::vector<int64_t> mixed = shuffled(samples, seed, 1);
  std::vector<HeldOut> turns(samples < kFew ? kParts : 1);
  for (size_t turn = 0; turn < turns.size(); ++turn)
    for (size_t i = 0; i < mixed.size(); ++i)
      (i % kParts == turn ? turns[turn].test : turns[turn].train).push_back(mixed[i]);
  return turns;
}

// Measures each block, and the best one on growing parts of the samples. Returns the index of the
// best.
size_t probe_blocks(const FeaturePart& features, const std::vector<Block>& blocks,
                    const std::vector<HeldOut>& turns, ThreadPool& pool,
                    const AdviseOptions& options, Advice& advice) {
  const int64_t tests = std::ssize(turns);
  std::vector<ProbeResult> results(blocks.size() * turns.size());
  pool.run(std::ssize(results), [&](int64_t i) {
    const HeldOut& turn = turns[i % tests];
    results[i] = probe(features, static_cast<size_t>(i / tests), turn.train, turn.test,
                       advice.classes, {1e-1, 1e-2, 1e-3}, options.seed);
  });
  for (size_t block = 0; block < blocks.size(); ++block) {
    Probe probe = {.block = blocks[block],
                   .log_me = log_me(features.layers[block], features.targets)};
    for (int64_t turn = 0; turn < tests; ++turn)
      probe.accuracy += results[block * tests + turn].accuracy / static_cast<double>(tests);
    advice.probes.push_back(std::move(probe));
  }
  const auto best = static_cast<size_t>(
      std::ranges::max_element(advice.probes, {}, &Probe::accuracy) - advice.probes.begin());

  const int64_t most = std::ssize(turns[0].train), repeats = std::max<int64_t>(3, tests);
  for (const int64_t part : {8, 4, 2})
    if (most / part >= 2 * advice.classes)
      advice.curve.push_back(
          {.samples = most / part, .errors = std::vector<double>(static_cast<size_t>(repeats))});
  pool.run(std::ssize(advice.curve) * repeats, [&](int64_t i) {
    CurvePoint& point = advice.curve[i / repeats];
    const int64_t repeat = i % repeats;
    const HeldOut& turn = turns[repeat % tests];
    const std::vector<int64_t> shuffle =
        shuffled(std::ssize(turn.train), options.seed, 2 + static_cast<uint64_t>(repeat));
    std::vector<int64_t> some;
    for (int64_t k = 0; k < point.samples; ++k) some.push_back(turn.train[shuffle[k]]);
    point.errors[repeat] = 1 - probe(features, best, some, turn.test, advice.classes,
                                     {results[best * tests + repeat % tests].l2}, options.seed)
                                   .accuracy;
  });
  CurvePoint last = {.samples = most};
  for (int64_t turn = 0; turn < tests; ++turn)
    last.errors.push_back(1 - results[best * tests + turn].accuracy);
  advice.curve.push_back(std::move(last));
  return best;
}

// Shift of the inputs of the first batch norm from its running statistics; empty without batch
// norm.
std::optional<double> shift_of(const BaseNetwork& base, const data::Dataset& set,
                               const data::Augmentation& prepare, const TensorType& sample,
                               int threads) {
  std::string first;
  for (const NamedTensor& weight : base.weights)
    if (first.empty() && weight.name.ends_with(".running_mean"))
      first = weight.name.substr(0, weight.name.rfind('.'));
  if (first.empty()) return {};
  const Tensor mean = find_tensor(base.weights, first + ".running_mean")->to(DType::f32);
  const Tensor* const variances = find_tensor(base.weights, first + ".running_var");
  if (!variances) return {};
  const Tensor variance = variances->to(DType::f32);
  std::vector<int64_t> some;
  for (int64_t i = 0; i < std::min<int64_t>(set.size(), 256); ++i)
    some.push_back(i * set.size() / std::min<int64_t>(set.size(), 256));
  Extractor extractor(base, sample, {.layers = {"before " + first}}, threads);
  const std::shared_ptr<const data::Dataset> borrowed(std::shared_ptr<void>(), &set);
  const FeaturePart part = extractor(*data::subset(borrowed, some), prepare);
  const int64_t channels = part.layers[0].shape()[1];
  if (channels != mean.elements()) return {};
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c) {
    double here = 0;
    for (int64_t i = 0; i < part.size(); ++i)
      here += part.layers[0].values<float>()[i * channels + c] / static_cast<double>(part.size());
    const double wrong = here - mean.values<float>()[c];
    sum += wrong * wrong / (variance.values<float>()[c] + 1e-5);
  }
  return std::sqrt(sum / static_cast<double>(channels));
}

// Share of a linear model's error that remains after fine-tuning, by samples per class and by the
// steepness of the linear models' learning curve. If more data hardly reduces the error,
// fine-tuning hardly does so either; with few samples, it increases the error. The constants were
// measured (docs/transfer.md).
double left_by_the_end(double each, double steepness) {
  return 1.05 - 0.6 * steepness * std::pow(each / (each + 20), 2);
}
double left_by_all(double each, double steepness) {
  return 1.08 - 0.7 * steepness * std::pow(each / (each + 40), 2);
}

void forecast(Advice& advice, double samples_per_second, const std::vector<Block>& blocks) {
  const double samples = static_cast<double>(advice.samples);
  // On unfamiliar data, fine-tuning needs more samples, so each counts for less.
  constexpr double kOfDifferent = 0.2;
  const double each = samples / static_cast<double>(std::max<int64_t>(1, advice.classes)) *
                      (advice.similar ? 1 : kOfDifferent);
  const Probe& last = advice.probes.back();
  const auto best = std::ranges::max_element(advice.probes, {}, &Probe::accuracy);
  const double pass = samples / samples_per_second;
  // Approximate share of the epochs before early stopping.
  const double epochs = 0.4 * static_cast<double>(finetune_length(advice.samples, false).epochs);
  const auto add = [&](Way way, const std::string& what, double measured, double left,
                       double seconds) {
    // Samples beyond those measured improve all ways equally.
    const double now = std::max(1e-3, 1 - best->accuracy);
    const auto error = [&](double later) {
      return std::clamp((1 - measured) * later / now * left, 0.0, 1.0);
    };
    advice.forecasts.push_back({.way = way,
                                .what = what,
                                .accuracy = 1 - error(advice.error.error),
                                .low = 1 - error(advice.error.high),
                                .high = 1 - error(advice.error.low),
                                .seconds = seconds});
  };
  add(Way::last_features, last.block.output, last.accuracy, 1, pass);
  const Probe* early = nullptr;
  for (const Probe& probe : advice.probes)
    if (&probe != &last && (!early || probe.accuracy > early->accuracy)) early = &probe;
  if (early) {
    // One of several blocks may be the best only by chance.
    const double most = advice.similar ? last.accuracy : 1;
    add(Way::early_features, early->block.output, std::min(most, early->accuracy), 1, pass);
  }
  const size_t end = std::min<size_t>(2, blocks.size() - 1);
  add(Way::fine_tune_end, fmt::format("last {}", end), last.accuracy,
      left_by_the_end(each, advice.steepness), 1.6 * epochs * pass);
  add(Way::train_all, "all", best->accuracy, left_by_all(each, advice.steepness),
      3 * epochs * pass);
  // Selects the simplest way within a small margin of the best.
  double most = 0;
  for (const Forecast& each_way : advice.forecasts) most = std::max(most, each_way.accuracy);
  constexpr double kAsGood = 0.005;
  for (size_t i = advice.forecasts.size(); i-- > 0;)
    if (advice.forecasts[i].accuracy >= most - kAsGood) advice.choice = i;
  advice.much = advice.chosen().way == Way::fine_tune_end || advice.chosen().way == Way::train_all;
}

std::string command_for(const Advice& advice) {
  const Forecast& way = advice.chosen();
  const std::string size = advice.side > 0 ? fmt::format(" --size {}", advice.side) : "";
  if (way.way == Way::last_features || way.way == Way::early_features)
    return fmt::format("artel features {} DATA --layer {}{} && artel fit linear features.npz",
                       shell_word(advice.base), shell_word(way.what), size);
  return fmt::format("artel finetune {} --data DATA --train {}{}", shell_word(advice.base),
                     shell_word(way.what), size);
}

}  // namespace

std::string_view to_string(Way way) {
  switch (way) {
    case Way::last_features:
      return "small model on the last features";
    case Way::early_features:
      return "small model on early features";
    case Way::fine_tune_end:
      return "fine-tune the end";
    case Way::train_all:
      return "train all blocks";
  }
  return "";
}

Advice advise(const BaseNetwork& base, const DataConfig& data, const AdviseOptions& options,
              const FeatureProgress& progress) {
  const Clock::time_point begun = Clock::now();
  RunConfig config;
  config.data = data;
  config.model = base.model;
  const RunData opened = open_data(config);
  const data::SampleLayout& layout = opened.layout();
  require(layout.target_kind == data::TargetKind::classes && layout.target.rank() == 0,
          ErrorKind::unsupported, "advise: the data has no classes, expected one for each sample");
  require(layout.classes > 1, ErrorKind::invalid_argument,
          "advise: got one class, expected two or more to tell apart");
  Advice advice = {.base = base.name,
                   .side = options.side,
                   .samples = opened.train->size(),
                   .classes = layout.classes};
  require(advice.samples >= 20, ErrorKind::invalid_argument,
          "advise: got {}, expected 20 or more to measure with",
          counted(advice.samples, "training sample"));
  const data::Augmentation prepare = opened.augment.for_testing();
  const TensorType sample = sample_type(layout, prepare);
  const std::vector<Block> all_blocks = blocks_of(base.network(), sample);
  const std::vector<Block> blocks = probed_blocks(all_blocks);
  require(!blocks.empty(), ErrorKind::unsupported,
          "[{}] has no layer below its head to take features from", base.name);

  // Computes the features of all blocks in one pass, for a subset of the samples.
  std::vector<int64_t> order = shuffled(advice.samples, options.seed, 0);
  advice.used = std::min(advice.samples, options.most_samples);
  order.resize(static_cast<size_t>(advice.used));
  std::ranges::sort(order);
  FeatureRequest request;
  for (const Block& block : blocks) request.layers.push_back(block.output);
  Extractor extractor(base, sample, request, options.threads);
  const Clock::time_point extracting = Clock::now();
  const FeaturePart features =
      extractor(*data::subset(opened.train, order), prepare, nullptr, progress);
  const double speed =
      static_cast<double>(advice.used) / std::max(1e-6, seconds_between(extracting, Clock::now()));
  advice.shift = shift_of(base, *opened.train, prepare, sample, options.threads);

  const std::vector<HeldOut> turns = held_out_in_turn(advice.used, options.seed);
  ThreadPool pool(options.threads, limit_library_threads);
  const size_t best = probe_blocks(features, blocks, turns, pool, options, advice);
  advice.error = extrapolate(advice.curve, advice.samples, options.seed);
  advice.error_of_more = extrapolate(advice.curve, 10 * advice.samples, options.seed);
  // Statistical uncertainty of an evaluation on few samples.
  const double noise =
      1.28 * std::sqrt(std::max(advice.error.error * (1 - advice.error.error), 1e-4) /
                       static_cast<double>(turns.size() * turns[0].test.size()));
  for (Extrapolation* error : {&advice.error, &advice.error_of_more}) {
    error->low = std::max(0.0, error->low - noise);
    error->high = std::min(1.0, error->high + noise);
  }
  constexpr double kAsGood = 0.02;
  advice.similar =
      advice.probes.back().accuracy >= advice.probes[best].accuracy - std::max(kAsGood, noise);
  advice.steepness = steepness(advice.curve);
  forecast(advice, speed, all_blocks);
  advice.seconds = seconds_between(begun, Clock::now());
  return advice;
}

void check_ways(const BaseNetwork& base, const std::string& data, const AdviseOptions& options,
                double budget, const std::filesystem::path& folder, Advice& advice) {
  for (Forecast& way : advice.forecasts) {
    const Clock::time_point begun = Clock::now();
    if (way.way == Way::last_features || way.way == Way::early_features) {
      const Features features = extract(base, data_for(base, data, options.side),
                                        {.layers = {way.what}}, options.threads);
      require(features.test.size() > 0, ErrorKind::invalid_argument,
              "--check: the data has no test part to check with");
      const SmallModel model = fit_small("linear", features, {.threads = options.threads});
      way.measured = judge(model, features.test, options.threads).accuracy;
    } else {
      const Finetuning plan =
          plan_finetuning(base, data,
                          {.train = way.what,
                           .side = options.side,
                           .overrides = {fmt::format("train.max_seconds={}", budget),
                                         fmt::format("cluster.threads={}", options.threads),
                                         "data.test_fraction=0.1"}});
      const std::filesystem::path out = folder / (way.way == Way::train_all ? "all" : "end");
      std::filesystem::remove_all(out);
      Run(plan.config, {.out = out.string(), .quiet = true}).train();
      way.measured = score_after(plan, out).test.accuracy;
    }
    way.took = seconds_between(begun, Clock::now());
  }
}

std::string to_text(const Advice& advice, int columns, bool unicode) {
  std::string text = fmt::format("{}: {} of {} classes, measured with {} of them in {:.1f} s\n\n",
                                 advice.base, counted(advice.samples, "training sample"),
                                 advice.classes, format_count(advice.used), advice.seconds);
  observe::Table probes({"block", "LogME", "linear model"});
  for (const Probe& probe : advice.probes)
    probes.add({probe.block.name, fmt::format("{:.3f}", probe.log_me),
                fmt::format("{:.4f}", probe.accuracy)});
  text += probes.text() + '\n';
  observe::Series series = {.name = "accuracy", .points = {}, .markers = true};
  observe::Table curve({"samples", "accuracy", ""});
  for (const CurvePoint& point : advice.curve) {
    series.points.emplace_back(static_cast<double>(point.samples), 1 - point.mean());
    curve.add({format_count(point.samples), fmt::format("{:.4f}", 1 - point.mean()), ""});
  }
  const auto add = [&](int64_t samples, const Extrapolation& error) {
    series.points.emplace_back(static_cast<double>(samples), 1 - error.error);
    curve.add({format_count(samples), fmt::format("{:.4f}", 1 - error.error),
               fmt::format("forecast: {:.4f} to {:.4f}", 1 - error.high, 1 - error.low)});
  };
  if (advice.samples > advice.curve.back().samples) add(advice.samples, advice.error);
  text += curve.text();
  text += observe::to_text(series, {.columns = columns, .rows = 8, .unicode = unicode});
  const double gain = advice.error.error - advice.error_of_more.error;
  text += fmt::format("ten times as much data would bring {:.4f} ({:+.1f} points)\n",
                      1 - advice.error_of_more.error, 100 * gain);
  text += fmt::format(
      "how much data: {}, {} to fine-tune with ({:.0f} samples for each class)\nhow similar: "
      "{}{}\n\n",
      advice.much ? "much" : "little", advice.much ? "enough" : "not enough",
      static_cast<double>(advice.samples) / static_cast<double>(advice.classes),
      advice.similar ? "similar, the last block is as good as any"
                     : "different, an earlier block is better than the last",
      advice.shift
          ? fmt::format("; its first statistics are off by {:.2f} deviations", *advice.shift)
          : "");
  const bool checked = advice.forecasts.front().measured.has_value();
  std::vector<std::string> header = {"way", "on", "forecast", "from", "to", "time"};
  if (checked) header.insert(header.end(), {"measured", "took"});
  header.emplace_back("");
  observe::Table ways(header);
  for (size_t i = 0; i < advice.forecasts.size(); ++i) {
    const Forecast& way = advice.forecasts[i];
    std::vector<std::string> row = {
        std::string(to_string(way.way)),     way.what,
        fmt::format("{:.4f}", way.accuracy), fmt::format("{:.4f}", way.low),
        fmt::format("{:.4f}", way.high),     format_duration(way.seconds)};
    if (checked) {
      row.push_back(way.measured ? fmt::format("{:.4f}", *way.measured) : "");
      row.push_back(way.took ? format_duration(*way.took) : "");
    }
    row.emplace_back(i == advice.choice ? "advised" : "");
    ways.add(row);
  }
  return text + ways.text() + "\nto do so: " + command_for(advice) + "\n";
}

}  // namespace artel::transfer
