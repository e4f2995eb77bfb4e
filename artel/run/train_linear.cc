#include "artel/run/train_linear.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/observe/metrics.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/fetch.h"
#include "artel/run/report.h"
#include "artel/run/server_report.h"
#include "artel/train/sparse_training.h"

namespace artel {
namespace {

constexpr double kUsualFilterShare = 0.5;
constexpr double kSecondsBetweenCheckpoints = 10;

// "key cache", "changes", "kkt 0.5", "skip 0.1", or a codec such as "fp16".
ps::FilterOptions filters_of(const std::vector<std::string>& words) {
  ps::FilterOptions filters = {.key_cache = false, .changes = false};
  for (const std::string& word : words) {
    const auto share = [&](std::string_view name) {
      const std::string rest(trim(std::string_view(word).substr(name.size())));
      return rest.empty() ? kUsualFilterShare : std::stod(rest);
    };
    if (word == "key cache")
      filters.key_cache = true;
    else if (word == "changes")
      filters.changes = true;
    else if (word.starts_with("kkt"))
      filters.kkt = share("kkt");
    else if (word.starts_with("skip"))
      filters.random_skip = share("skip");
    else
      filters.compress = comm::make_codec(word)->name();
  }
  return filters;
}

SparseTrainingOptions options_of(const RunConfig& config) {
  const auto [train, test] = sparse_files(config);
  const ClusterConfig& cluster = config.cluster;
  require(config.train.loss == "cross_entropy" || config.train.loss == "mse",
          ErrorKind::invalid_argument,
          "train.loss: got \"{}\" with the strategy \"ddpg\", expected \"cross_entropy\" (logistic "
          "regression) or \"mse\"",
          config.train.loss);
  SparseTrainingOptions options = {.train = train,
                                   .test = test,
                                   .scratch = std::filesystem::temp_directory_path(),
                                   .blocks = static_cast<int>(cluster.blocks)};
  options.solver = {.loss = config.train.loss == "mse" ? "squared" : "logistic",
                    .penalty = {.l1 = config.train.l1, .l2 = config.train.l2},
                    .delay = cluster.delay,
                    .rate = cluster.block_rate,
                    .damping = cluster.delay_damping,
                    .passes = config.train.epochs,
                    .tolerance = config.train.tolerance,
                    .order = {},
                    .seed = static_cast<uint64_t>(config.train.seed),
                    .filters = filters_of(cluster.filters)};
  for (const std::string& block : cluster.block_order)
    options.solver.order.push_back(std::stoi(block));
  return options;
}

// 1, 2, 5, 10, 20, 50, ...: enough to see how it goes.
bool is_round(int64_t number) {
  while (number >= 10 && number % 10 == 0) number /= 10;
  return number == 1 || number == 2 || number == 5;
}

std::string line_of(const ps::PassReport& report) {
  return fmt::format(
      "pass {}: objective {:.4f}, loss {:.4f}, accuracy {:.4f}, {} weights, waiting {:.1f} %, {}",
      report.pass, report.objective, report.loss / static_cast<double>(report.samples),
      static_cast<double>(report.correct) / static_cast<double>(report.samples),
      format_count(report.nonzeros), 100 * report.seconds_waited / std::max(1e-9, report.seconds),
      format_duration(report.seconds));
}

// The constant is behind the features.
NamedTensors to_tensors(const std::vector<float>& weights) {
  return {{"weight", Tensor::from<float>({static_cast<int64_t>(weights.size()) - 1},
                                         {weights.begin(), weights.end() - 1})},
          {"bias", Tensor::from<float>({1}, {weights.back()})}};
}

std::vector<float> from_tensors(const NamedTensors& tensors) {
  std::vector<float> weights;
  for (const NamedTensor& each : tensors) {
    const std::span<const float> values = each.tensor.values<float>();
    weights.insert(each.name == "bias" ? weights.end() : weights.begin(), values.begin(),
                   values.end());
  }
  return weights;
}

// Checkpoints of the weights: what the servers have, at the end of a pass.
void keep_checkpoints(const TrainConfig& train, const std::filesystem::path& folder,
                      ps::DelayedProximalOptions& solver) {
  solver.saves_after = [every = train.save_every, last = train.epochs,
                        saved = Clock::now()](int64_t pass) mutable {
    const bool due = every > 0 ? pass % every == 0
                               : seconds_between(saved, Clock::now()) >= kSecondsBetweenCheckpoints;
    if (due) saved = Clock::now();
    return due || pass == last;
  };
  solver.save = [folder, keep = static_cast<int>(train.keep_last)](
                    int64_t pass, const std::vector<float>& weights) {
    checkpoint::save_checkpoint(folder, {.step = pass, .weights = to_tensors(weights)},
                                {.keep_last = keep});
  };
}

// Where there is a checkpoint.
void go_on(const std::filesystem::path& folder, ps::DelayedProximalOptions& solver) {
  if (!std::filesystem::is_directory(folder)) return;
  const auto newest = checkpoint::load_newest(folder);
  if (!newest) return;
  solver.passes_done = newest->checkpoint.step;
  solver.weights = from_tensors(newest->checkpoint.weights);
}

// A pass as a step and an epoch of its own.
TrainingState state_of(const ps::PassReport& report, int64_t passes) {
  const auto samples = static_cast<double>(std::max<int64_t>(1, report.samples));
  return {.epoch = report.pass,
          .epochs = passes,
          .step = report.pass,
          .steps = passes,
          .samples = report.samples,
          .loss = report.loss / samples,
          .accuracy = static_cast<double>(report.correct) / samples,
          .seconds = report.seconds,
          .seconds_exchanging = report.seconds_waited,
          .sent_bytes = report.sent_bytes};
}

FitResult fit_result(const SparseTraining& training, const TrainConfig& train, bool called_off) {
  FitResult result{.last = state_of(training.last, train.epochs), .servers = training.servers};
  TrainingState& last = result.last;
  if (training.test.samples > 0) {
    last.tested = true;
    last.test_loss = training.test.loss;
    last.test_accuracy =
        static_cast<double>(training.test.correct) / static_cast<double>(training.test.samples);
  }
  result.epochs = {last};
  result.stopped_by = called_off ? "callback" : last.step == train.epochs ? "epochs" : "tolerance";
  return result;
}

void write_summary(const FitResult& result, const ps::PassReport& pass, const RunFolder& folder) {
  const TrainingState& last = result.last;
  nlohmann::ordered_json json = {{"passes", pass.pass},
                                 {"objective", pass.objective},
                                 {"loss", last.loss},
                                 {"accuracy", last.accuracy},
                                 {"nonzeros", pass.nonzeros},
                                 {"seconds", pass.seconds},
                                 {"seconds_waiting_for_workers", pass.seconds_waited},
                                 {"sent_bytes", pass.sent_bytes},
                                 {"received_bytes", pass.received_bytes}};
  add_server_report(json, result.servers);
  if (last.tested) {
    json["test_loss"] = last.test_loss;
    json["test_accuracy"] = last.test_accuracy;
  }
  write_file_atomically(folder.summary(), json.dump(2) + "\n");
}

void print_result(const FitResult& result, const SparseTraining& training,
                  const RunFolder& folder) {
  const ps::PassReport& last = training.last;
  observe::Table table({"result", ""});
  if (result.last.tested) {
    table.add({"test accuracy", fmt::format("{:.4f}", result.last.test_accuracy)});
    table.add({"test loss", fmt::format("{:.4f}", result.last.test_loss)});
  }
  table.add({"training loss", fmt::format("{:.4f}", result.last.loss)});
  table.add({"objective", fmt::format("{:.4f}", last.objective)});
  table.add({"weights", fmt::format("{} of {} are not zero", format_count(last.nonzeros),
                                    format_count(training.features + 1))});
  table.add({"passes", format_count(last.pass)});
  table.add({"time", format_duration(last.seconds)});
  table.add({"waiting for workers",
             fmt::format("{:.1f} %", 100 * last.seconds_waited / std::max(1e-9, last.seconds))});
  table.add({"sent by a worker", format_bytes(static_cast<double>(last.sent_bytes))});
  table.add({"received by a worker", format_bytes(static_cast<double>(last.received_bytes))});
  add_server_report(table, result.servers);
  table.add({"folder", folder.path().string()});
  fmt::print("{}", table.text());
  std::fflush(stdout);
}

}  // namespace

bool is_linear(const RunConfig& config) { return config.cluster.strategy == "ddpg"; }

std::pair<std::filesystem::path, std::filesystem::path> sparse_files(const RunConfig& config) {
  if (config.data.set == "a9a") {
    const std::filesystem::path folder =
        config.data.path.empty() ? fetch_set("a9a") : std::filesystem::path(config.data.path);
    return {folder / "a9a", folder / "a9a.t"};
  }
  require(config.data.set == "libsvm" && !config.data.path.empty(), ErrorKind::invalid_argument,
          "data.set: got \"{}\" with the strategy \"ddpg\", expected \"a9a\", or \"libsvm\" with a "
          "data.path",
          config.data.set);
  return {config.data.path, config.data.test_path};
}

RunResult train_linear(const RunConfig& config, Cluster& cluster, const RunFolder* folder,
                       const RunOptions& run) {
  SparseTrainingOptions options = options_of(config);
  bool called_off = false;
  const auto after_pass = [&](const ps::PassReport& report) {
    for (const auto* callbacks : {&run.after_step, &run.after_epoch})
      for (const Callback& callback : *callbacks)
        if (!callback(state_of(report, config.train.epochs))) called_off = true;
    return !called_off;
  };
  const auto finished = [&](const SparseTraining& training) {
    return RunResult{.fit = fit_result(training, config.train, called_off),
                     .parameters = training.features + 1};
  };
  if (!folder) return finished(train_sparse(cluster, options, after_pass));

  std::filesystem::create_directories(folder->path());
  write_file_atomically(folder->config(), to_toml(config));
  keep_checkpoints(config.train, folder->checkpoints(), options.solver);
  std::optional<observe::Progress> progress;
  if (!run.quiet) progress.emplace();
  const auto note = [&](const std::string& text) {
    if (progress) progress->note(text);
  };
  if (run.resume) {
    go_on(folder->checkpoints(), options.solver);
    note(folder->resume_note("pass", options.solver.passes_done));
  }
  observe::MetricsWriter metrics(folder->path(), options.solver.passes_done);
  note(fmt::format("{}: {} workers, {} servers, delay {}", options.train.string(), cluster.size(),
                   cluster.servers(),
                   options.solver.delay ? std::to_string(*options.solver.delay) : "none"));
  const SparseTraining training = train_sparse(cluster, options, [&](const ps::PassReport& report) {
    const auto samples = static_cast<double>(report.samples);
    metrics.write(report.pass, {{"train/objective", report.objective},
                                {"train/loss", report.loss / samples},
                                {"train/accuracy", static_cast<double>(report.correct) / samples},
                                {"train/nonzeros", static_cast<double>(report.nonzeros)}});
    if (is_round(report.pass)) note(line_of(report));
    return after_pass(report);
  });
  metrics.flush();
  draw_curves(*folder);
  const RunResult result = finished(training);
  checkpoint::write_safetensors(folder->path() / "model.safetensors", to_tensors(training.weights));
  write_summary(result.fit, training.last, *folder);
  if (progress) print_result(result.fit, training, *folder);
  return result;
}

}  // namespace artel
