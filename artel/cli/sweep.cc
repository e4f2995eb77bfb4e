#include "artel/run/sweep.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/file_lock.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/mutex.h"
#include "artel/base/plural.h"
#include "artel/base/process.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/launch.h"
#include "artel/nn/metric.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"
#include "artel/run/config/config.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/interrupt.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string file, out, budget;
  std::vector<std::string> settings;
  int trials = 20, parallel = 0;
  int64_t keep_one_in = 3;
  uint64_t seed = 0;
  bool resume = false;
};

// "90", "90s", "30m" or "2h".
double seconds_of(const std::string& text) {
  static const std::map<std::string, double> units = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}};
  size_t used = 0;
  double number = -1;
  try {
    number = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const auto unit = units.find(std::string(trim(text.substr(used))));
  require(number > 0 && unit != units.end(), ErrorKind::invalid_argument,
          "--budget: got '{}', expected a time such as 90s, 30m or 2h", text);
  return number * unit->second;
}

// A signal handler can only use globals.
std::atomic<int> sweep_signal{0};
void stop_sweep(int signal) {
  if (signal == SIGTERM && sweep_signal != 0) return;  // repeated by a scheduler
  if (sweep_signal.exchange(signal) != 0) ::_exit(128 + signal);
}

class Sweep {
 public:
  explicit Sweep(const Arguments& arguments)
      : arguments_(arguments), out_(folder()), budget_(Deadline::never()) {
    if (!arguments.budget.empty()) budget_ = Deadline::after(seconds_of(arguments.budget));
    for (const std::string& setting : arguments.settings)
      if (auto dimension = parse_dimension(setting))
        dimensions_.push_back(std::move(*dimension));
      else
        fixed_.push_back(setting);
    require(!dimensions_.empty(), ErrorKind::invalid_argument,
            "[sweep] got nothing to vary, expected a range or choices; try --set "
            "\"train.optimizer.lr=0.01..1 log\"");
    // Mistakes in keys are found before the first trial.
    for (const int trial : {0, 1}) read_config(arguments.file, settings_of(trial));
    const RunConfig config = read_config(arguments.file, fixed_);
    by_steps_ = config.train.steps > 0;
    lengths_ =
        rungs_of(by_steps_ ? config.train.steps : config.train.epochs, arguments.keep_one_in);
    best_by_ = config.train.best_by;
    rules_ = {.trials = arguments.trials,
              .rungs = static_cast<int>(lengths_.size()),
              .fraction = arguments.keep_one_in,
              .less_is_better = best_by_ == "loss" || metric_by_name(best_by_).less_is_better};
    divide_cores(config.cluster);
    if (config.data.validation == 0 && config.data.folds == 0)
      log(LogLevel::warning,
          "trials are ranked by the test part, so its results are too optimistic; try --set "
          "data.validation=0.1");
  }

  void run() {
    open_folder();
    const HandleSignals signals(stop_sweep);
    log(LogLevel::info, "{} trials, {} at a time, to {} {}", rules_.trials, parallel_,
        join_lengths(), by_steps_ ? "steps" : "epochs");
    std::vector<std::thread> threads;
    for (int i = 0; i < parallel_; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    report();
    if (sweep_signal == 0) return;
    println("stopped; to continue, run the same command with --out {} --resume",
            shell_word(out_.string()));
    throw CLI::RuntimeError(128 + sweep_signal);
  }

 private:
  struct Stopped {};

  fs::path folder() const {
    if (!arguments_.out.empty()) return arguments_.out;
    return fs::path("sweeps") / fs::path(arguments_.file).stem();
  }
  fs::path results_file() const { return out_ / "trials.jsonl"; }
  fs::path trial_folder(int trial) const { return out_ / fmt::format("trial-{:03}", trial); }

  std::string length_text(int rung) const {
    return counted(lengths_[static_cast<size_t>(rung)], by_steps_ ? "step" : "epoch");
  }

  std::string join_lengths() const {
    std::vector<std::string> texts;
    for (const int64_t length : lengths_) texts.push_back(std::to_string(length));
    return join(texts, ", ");
  }

  // Concurrent trials share the cores.
  void divide_cores(const ClusterConfig& cluster) {
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const auto workers = static_cast<int>(cluster.workers.most);
    const int each = cluster.threads > 0 ? static_cast<int>(cluster.threads) * workers : 1;
    parallel_ = arguments_.parallel > 0 ? arguments_.parallel : std::max(1, cores / each);
    if (cluster.threads == 0)
      fixed_.push_back(fmt::format("cluster.threads={}", std::max(1, cores / parallel_ / workers)));
  }

  std::vector<std::string> settings_of(int trial) const {
    std::vector<std::string> settings = fixed_;
    for (const SweepDimension& dimension : dimensions_)
      settings.push_back(dimension.key + "=" + drawn_value(dimension, arguments_.seed, trial));
    return settings;
  }

  // Settings that must not change when a sweep continues.
  nlohmann::ordered_json identity() const {
    return {{"file", fs::absolute(arguments_.file).lexically_normal().string()},
            {"set", arguments_.settings},
            {"seed", arguments_.seed},
            {"keep_one_in", arguments_.keep_one_in}};
  }

  void open_folder() {
    const fs::path about = out_ / "sweep.json";
    const bool exists = fs::exists(about);
    require(exists == arguments_.resume, ErrorKind::invalid_argument, "[{}] {}", out_.string(),
            exists
                ? "this folder has a sweep already; try --resume to continue it, or another --out"
                : "no sweep to resume; try without --resume");
    fs::create_directories(out_);
    try {
      lock_ = std::make_unique<FileLock>(out_ / "lock", Deadline::after(1));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
    }
    if (exists) {
      const nlohmann::json before = parse_json(read_file(about), about.string());
      const nlohmann::ordered_json now = identity();
      for (const auto& [key, value] : now.items())
        require(before.value(key, nlohmann::json()) == nlohmann::json(value),
                ErrorKind::invalid_argument, "[{}] {}: got {}, expected {} as before",
                about.string(), key, value.dump(), before.value(key, nlohmann::json()).dump());
      read_results();
    } else {
      write_file_atomically(about, identity().dump(2) + "\n");
    }
  }

  // A line that a kill has cut off is a result that was not written.
  void read_results() {
    if (!fs::exists(results_file())) return;
    const std::string text = read_file(results_file());
    if (!text.empty() && !text.ends_with('\n'))
      std::ofstream(results_file(), std::ios::app) << '\n';
    const MutexLock lock(mutex_);
    for (const std::string& line : split(text, '\n')) {
      const nlohmann::json json = json_or_null(line);
      if (!json.is_object() || !json.contains("trial") || !json.contains("rung")) continue;
      const std::optional<int64_t> trial = whole_number(json["trial"]),
                                   rung = whole_number(json["rung"]);
      if (!trial || !rung || !std::in_range<int>(*trial) || !std::in_range<int>(*rung)) continue;
      const auto value = json.find("value");
      results_[{static_cast<int>(*trial), static_cast<int>(*rung)}] =
          value != json.end() && value->is_number() ? std::optional(value->get<double>())
                                                    : std::nullopt;
    }
    log(LogLevel::info, "{} results so far", results_.size());
  }

  void work() {
    MutexLock lock(mutex_);
    while (sweep_signal == 0 && !failure_ && !budget_.passed()) {
      const std::optional<SweepJob> job = next_job(rules_, results_, running_);
      if (!job && running_.empty()) break;
      if (!job) {  // a running job may still be good enough to advance
        changed_.wait_for(lock, std::chrono::milliseconds(200));
        continue;
      }
      running_.insert(*job);
      lock.unlock();
      std::optional<nlohmann::ordered_json> result;
      std::exception_ptr failure;
      try {
        result = train(*job);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      running_.erase(*job);
      try {
        if (failure) std::rethrow_exception(failure);
        if (result) keep(*job, *result);
      } catch (...) {
        failure_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  // Empty if the sweep was stopped; the trial continues from its last checkpoint later.
  std::optional<nlohmann::ordered_json> train(const SweepJob& job) {
    const int64_t length = lengths_[static_cast<size_t>(job.rung)];
    nlohmann::ordered_json result = {
        {"trial", job.trial}, {"rung", job.rung}, {by_steps_ ? "steps" : "epochs", length}};
    for (const SweepDimension& dimension : dimensions_)
      result["set"][dimension.key] = drawn_value(dimension, arguments_.seed, job.trial);
    const RunFolder folder(trial_folder(job.trial));
    std::string problem;
    // A killed process continues once from its last checkpoint.
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::vector<std::string> command =
          own_command_with({"train", arguments_.file, "--out", folder.path().string()});
      if (folder.used()) command.emplace_back("--resume");
      fs::remove(folder.summary());  // so that a later summary belongs to this length
      std::vector<std::string> settings = settings_of(job.trial);
      settings.push_back(fmt::format("train.{}={}", by_steps_ ? "steps" : "epochs", length));
      for (const std::string& setting : settings) {
        command.emplace_back("--set");
        command.push_back(setting);
      }
      try {
        const ProcessResult process = run_program(command, ".", budget_, [] {
          if (sweep_signal != 0) throw Stopped();
        });
        write_file_atomically(folder.path().string() + ".log", process.output);
        if (process.exit_code == 0 && !fs::exists(folder.summary())) {
          // Killed between its last checkpoint and its summary, it has nothing left to train.
          fs::remove_all(folder.path());
          problem = "it left no summary";
          continue;
        }
        if (process.exit_code == 0) {
          const nlohmann::json summary =
              parse_json(read_file(folder.summary()), folder.summary().string());
          const bool epochs = summary.contains("best") || best_by_ != "loss";
          result["value"] = epochs ? summary.at("best").at("value") : summary.at("loss");
          result["on"] = epochs ? summary.at("best").at("on") : nlohmann::json("train");
          return result;
        }
        const std::vector<std::string> lines = split(trim(process.output), '\n');
        problem = lines.empty() ? "" : lines.back();
        if (process.exit_code < 128) break;
        problem = fmt::format("ended by signal {}", process.exit_code - 128);
      } catch (const Stopped&) {
        return {};
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::timeout) return {};
        problem = error.what();
        break;
      } catch (const nlohmann::json::exception&) {
        problem = "its summary has no best value";
        break;
      }
    }
    result["failed"] = problem;
    return result;
  }

  void keep(const SweepJob& job, const nlohmann::ordered_json& result) ARTEL_REQUIRES(mutex_) {
    const bool good = result.contains("value");
    results_[job] = good ? std::optional(result["value"].get<double>()) : std::nullopt;
    std::ofstream file(results_file(), std::ios::app);
    file << result.dump() << '\n' << std::flush;
    require(file.good(), ErrorKind::io, "[{}] cannot be written", results_file().string());
    std::vector<std::string> values;
    for (const SweepDimension& dimension : dimensions_)
      values.push_back(dimension.key + " " + result["set"][dimension.key].get<std::string>());
    log(LogLevel::info, "trial {} after {}: {} ({})", job.trial, length_text(job.rung),
        good ? fmt::format("{} {:.4g}", best_by_, *results_[job])
             : "failed: " + result["failed"].get<std::string>(),
        join(values, ", "));
  }

  // The trials, longest training first, then best first.
  std::vector<SweepJob> placed() const ARTEL_REQUIRES(mutex_) {
    std::vector<SweepJob> all;
    std::set<int> seen;
    for (int rung = rules_.rungs - 1; rung >= 0; --rung)
      for (const int trial : ranking(results_, rung, rules_.less_is_better))
        if (seen.insert(trial).second) all.push_back({trial, rung});
    return all;
  }

  void report() ARTEL_REQUIRES(mutex_) {
    std::vector<std::string> headers = {"trial"};
    for (const SweepDimension& dimension : dimensions_) headers.push_back(dimension.key);
    headers.emplace_back(by_steps_ ? "steps" : "epochs");
    headers.push_back(best_by_);
    observe::Table table(headers);
    const std::vector<SweepJob> all = placed();
    for (const SweepJob& job : all) {
      std::vector<std::string> cells = {std::to_string(job.trial)};
      for (const SweepDimension& dimension : dimensions_)
        cells.push_back(drawn_value(dimension, arguments_.seed, job.trial));
      cells.push_back(std::to_string(lengths_[static_cast<size_t>(job.rung)]));
      cells.push_back(fmt::format("{:.4g}", *results_.at(job)));
      table.add(std::move(cells));
    }
    fmt::print("{}", table.text());
    const auto failed = std::count_if(results_.begin(), results_.end(),
                                      [](const auto& result) { return !result.second; });
    if (failed > 0) println("failed    {} (see {})", failed, results_file().string());
    if (all.empty()) return;
    write_file_atomically(out_ / "sweep.svg", observe::to_svg(plots(all)));
    println("best      {}", trial_folder(all.front().trial).string());
    println("picture   {}", (out_ / "sweep.svg").string());
  }

  // For each range: the values of the trials, one series for each length of training.
  std::vector<observe::Plot> plots(const std::vector<SweepJob>& all) const ARTEL_REQUIRES(mutex_) {
    std::vector<observe::Plot> panels;
    for (const SweepDimension& dimension : dimensions_) {
      if (!dimension.is_range()) continue;
      observe::Plot plot{.title = dimension.key,
                         .x_label = dimension.key,
                         .y_label = best_by_,
                         .series = {},
                         .log_x = dimension.logarithmic};
      for (int rung = 0; rung < rules_.rungs; ++rung) {
        observe::Series series{.name = length_text(rung), .points = {}, .markers = true};
        for (const SweepJob& job : all)
          if (job.rung == rung)
            series.points.emplace_back(
                std::stod(drawn_value(dimension, arguments_.seed, job.trial)), *results_.at(job));
        std::sort(series.points.begin(), series.points.end());
        if (!series.points.empty()) plot.series.push_back(std::move(series));
      }
      panels.push_back(std::move(plot));
    }
    return panels;
  }

  const Arguments& arguments_;
  const fs::path out_;
  Deadline budget_;
  std::vector<SweepDimension> dimensions_;
  std::vector<std::string> fixed_;
  std::vector<int64_t> lengths_;  // of the rungs
  bool by_steps_ = false;
  std::string best_by_;
  SweepRules rules_;
  int parallel_ = 1;
  std::unique_ptr<FileLock> lock_;
  Mutex mutex_;
  Condition changed_;
  SweepResults results_ ARTEL_GUARDED_BY(mutex_);
  std::set<SweepJob> running_ ARTEL_GUARDED_BY(mutex_);
  std::exception_ptr failure_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace

void add_sweep(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "sweep", "Search for good settings: many trials, the better ones longer");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  command
      ->add_option(
          "--set", arguments->settings,
          "A key to vary, \"KEY=LOW..HIGH\", \"KEY=LOW..HIGH log\" or \"KEY=A|B|C\", or one "
          "to set in all trials; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->required();
  command->add_option("--trials", arguments->trials, "Number of trials")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  command->add_option("--budget", arguments->budget, "Stop after this time: 90s, 30m, 2h")
      ->type_name("TIME");
  command
      ->add_option("--keep-one-in", arguments->keep_one_in,
                   "One in N trials is trained N times longer; 1: all trials to the end")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--parallel", arguments->parallel, "Concurrent trials (default: one per core)")
      ->check(at_least(1));
  command->add_option("--seed", arguments->seed, "Random seed of the values")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "Folder of the sweep (default: sweeps/NAME)")
      ->type_name("DIR");
  command->add_flag("--resume", arguments->resume, "Continue a stopped sweep");
  command->footer(
      "Values are drawn at random. Each trial is a run of its own in a folder of the sweep, "
      "trained\n"
      "by a process of its own to a ninth of the epochs (or steps) of FILE; the best third of "
      "those\n"
      "to a third, the best third of these to the end. train.best_by defines the best, on the\n"
      "validation part if there is one. A trial that fails costs only itself. Prints a table, "
      "best\n"
      "first, and draws sweep.svg.\n\n"
      "Trials share the cores of this machine: one core each, or the workers and threads that "
      "FILE\n"
      "asks for (cluster.workers, cluster.threads). For several machines, start a sweep on each, "
      "with\n"
      "another --seed and --out.\n\n"
      "Examples:\n"
      "  artel sweep examples/mnist.toml --set \"train.optimizer.lr=0.01..1 log\" --trials 20\n"
      "  artel sweep examples/mnist.toml --set \"train.optimizer.lr=0.01..1 log\" \\\n"
      "    --set \"train.batch_size=16..256 log\" --set train.epochs=9 --budget 30m");
  command->callback([arguments] { Sweep(*arguments).run(); });
}

}  // namespace artel::cli
