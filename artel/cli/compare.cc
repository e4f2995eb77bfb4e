#include <CLI/CLI.hpp>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/launch.h"
#include "artel/comm/codecs/codec.h"
#include "artel/observe/metrics.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/folder/saved_run.h"
#include "artel/train/strategies/registry.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file, out;
  std::vector<std::string> strategies, overrides;
  int64_t workers = 2, steps = 0;
};

struct Outcome {
  std::string strategy;
  nlohmann::json summary;
  Evaluation test;
  observe::Series loss;  // against seconds
};

std::string first_word(const std::string& words) { return split(words, ' ').front(); }

// The settings of one part of a strategy, such as "ring", "local 8", or "top-k 1%".
std::vector<std::string> settings_of(const std::string& part) {
  const std::string name = first_word(part);
  for (const std::string& form : comm::codec_names())
    if (first_word(form) == name) return {"cluster.compress=" + part};
  std::vector<std::string> names, known;
  for (const StrategyKind* kind : strategy_kinds())
    for (const std::string& form : kind->compared_as) {
      if (first_word(form) == name) return kind->compared_settings(part);
      names.push_back(first_word(form));
      known.push_back(names.back() == form ? form : fmt::format("'{}'", form));
    }
  fail(ErrorKind::invalid_argument, "--strategies: got '{}'{}; known: {}, {}", part,
       did_you_mean(name, names), join(known, ", "), join(comm::codec_names(), ", "));
}

std::string folder_name(std::string strategy) {
  for (char& c : strategy)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return strategy;
}

observe::Series loss_against_time(const RunFolder& folder, const std::string& name) {
  auto metrics = observe::read_metrics(folder.path());
  std::map<int64_t, double> seconds;
  for (const auto& [step, value] : metrics["seconds"]) seconds.emplace(step, value);
  observe::Series series{.name = name, .points = {}};
  for (const auto& [step, loss] : metrics["train/loss"])
    series.points.emplace_back(seconds[step], loss);
  series = observe::thinned(std::move(series));
  series.markers = false;
  return series;
}

Outcome run(const Arguments& arguments, const std::string& strategy,
            const std::filesystem::path& out) {
  const RunFolder folder(out / folder_name(strategy));
  std::filesystem::create_directories(out);
  WorkerCommand command{
      .name = strategy,
      .arguments = own_command_with({"train", arguments.file, "--out", folder.path().string(), "-n",
                                     std::to_string(arguments.workers)}),
      .output = folder.path().string() + ".log"};
  std::vector<std::string> settings = arguments.overrides;
  if (arguments.steps > 0) settings.push_back(fmt::format("train.steps={}", arguments.steps));
  for (const std::string& part : split(strategy, '+'))
    for (const std::string& setting : settings_of(std::string(trim(part))))
      settings.push_back(setting);
  for (const std::string& setting : settings) {
    command.arguments.emplace_back("--set");
    command.arguments.push_back(setting);
  }
  if (const int code = supervise({command}); code != 0) {
    println("{}", trim(read_file(command.output)));
    throw CLI::RuntimeError(code);
  }
  const SavedRun saved = open_run({.path = folder.path().string()});
  return {strategy, parse_json(read_file(folder.summary()), folder.summary().string()),
          saved.evaluate(Part::test), loss_against_time(folder, strategy)};
}

// The workers that send least and most.
std::string sent_per_step(const nlohmann::json& summary) {
  double least = summary.at("sent_bytes"), most = least;
  for (const nlohmann::json& worker : summary.value("traffic", nlohmann::json::array())) {
    least = std::min<double>(least, worker.at("sent_bytes"));
    most = std::max<double>(most, worker.at("sent_bytes"));
  }
  const auto steps = static_cast<double>(std::max<int64_t>(1, summary.at("step")));
  return format_byte_range(least / steps, most / steps);
}

std::string to_table(const std::vector<Outcome>& outcomes) {
  // The first metric that all outcomes have as one number, such as accuracy; regression may have
  // none.
  std::string metric;
  for (const MetricValue& value : outcomes.front().test.metrics)
    if (value.single && metric.empty()) metric = value.name;
  std::vector<std::string> headers = {"strategy", "exchange", "lanes", "training loss",
                                      "test loss"};
  if (!metric.empty()) headers.push_back("test " + metric);
  headers.insert(headers.end(), {"time", "sent per step", "waiting"});
  observe::Table table(headers);
  for (const Outcome& outcome : outcomes) {
    const nlohmann::json& s = outcome.summary;
    const double seconds = s.at("seconds"),
                 waited = s.at("seconds_waiting_for_workers").get<double>() +
                          s.value("seconds_waiting_for_the_wire", 0.0);
    const nlohmann::json path = s.value("exchange", nlohmann::json::object());
    std::vector<std::string> cells = {
        outcome.strategy,
        path.empty() ? ""
                     : fmt::format("{}, {}", path.at("algorithm").get<std::string>(),
                                   path.at("reduction").get<std::string>()),
        s.contains("lanes") ? s.at("lanes").dump() : "",
        fmt::format("{:.4f}", s.at("loss").get<double>()),
        fmt::format("{:.4f}", outcome.test.loss)};
    if (!metric.empty()) {
      const MetricValue* const value = find_metric(outcome.test.metrics, metric);
      cells.push_back(value ? fmt::format("{:.4f}", value->value) : "");
    }
    cells.insert(cells.end(), {format_duration(seconds), sent_per_step(s),
                               fmt::format("{:.1f} %", 100 * waited / std::max(seconds, 1e-9))});
    table.add(std::move(cells));
  }
  return table.text();
}

void compare(const Arguments& arguments) {
  const std::filesystem::path out =
      arguments.out.empty()
          ? choose_folder({.config = arguments.file, .out = "", .name = "", .resume = false})
                    .path()
                    .string() +
                "-compare"
          : arguments.out;
  std::vector<Outcome> outcomes;
  observe::Plot plot{
      .title = "loss against time", .x_label = "seconds", .y_label = "training loss", .series = {}};
  for (const std::string& strategy : arguments.strategies) {
    outcomes.push_back(run(arguments, strategy, out));
    plot.series.push_back(outcomes.back().loss);
  }
  write_file_atomically(out / "compare.svg", observe::to_svg(plot));
  fmt::print("{}", to_table(outcomes));
  println("{}", (out / "compare.svg").string());
}

}  // namespace

void add_compare(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "compare", "Train with several strategies on the same budget and compare their cost");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  command
      ->add_option("--strategies", arguments->strategies,
                   "Strategies to compare, separated by commas")
      ->delimiter(',')
      ->required();
  command->add_option("-n,--workers", arguments->workers, "Number of workers")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_option("--steps", arguments->steps, "Steps of each run (default: as in FILE)")
      ->check(at_least(1));
  command->add_option("--out", arguments->out, "Folder of the runs (default: runs/NAME-compare)")
      ->type_name("DIR");
  add_overrides(command, arguments->overrides);
  command->footer(
      "A strategy is a path that sums take (ring, tree, halving, hierarchical, coordinator, "
      "auto),\n"
      "'local STEPS' between averages, or a codec (fp16, bf16, int8, sign, 'top-k 1%',\n"
      "'powersgd 4'); several may be joined by '+'. Prints a table and draws compare.svg.\n\n"
      "Examples:\n"
      "  artel compare examples/mnist.toml --strategies ring,tree,coordinator -n 4\n"
      "  artel compare examples/mnist.toml --strategies \"ring,local 8,top-k 1%,local 8 + int8\"");
  command->callback([arguments] { compare(*arguments); });
}

}  // namespace artel::cli
