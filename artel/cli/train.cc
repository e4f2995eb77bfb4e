#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/dashboard.h"
#include "artel/cli/folds.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/workers.h"
#include "artel/run/run.h"
#include "artel/run/setup.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file;
  RunOptions options;
  MeetingPlace join;
  int folds = 0;
  bool dashboard = false;
};

std::string resume_command(const Arguments& arguments, const std::filesystem::path& folder) {
  std::string line = fmt::format("artel train {} --out {} --resume", shell_word(arguments.file),
                                 shell_word(folder.string()));
  for (const std::string& text : arguments.options.overrides) line += " --set " + shell_word(text);
  return line;
}

// Runs this command once for each worker and server.
int launch_workers(const RunConfig& config) {
  return launch_here({.workers = static_cast<int>(config.cluster.workers.most),
                      .servers = server_count(config),
                      .outlives_workers = outlives_workers(config),
                      .elastic = is_elastic(config),
                      .restarts = static_cast<int>(config.cluster.restarts),
                      .servers_inside = config.cluster.servers_inside,
                      .transport = config.cluster.transport});
}

// Where the run will be among others.
std::filesystem::path folder_of_runs(const RunOptions& options) {
  if (options.out.empty()) return "runs";
  const std::filesystem::path parent = std::filesystem::path(options.out).parent_path();
  return parent.empty() ? "." : parent;
}

void train(Arguments& arguments) {
  std::optional<DashboardBeside> dashboard;
  if (arguments.dashboard) dashboard.emplace(folder_of_runs(arguments.options));
  if (arguments.folds > 0)
    return cross_validate(arguments.file, arguments.folds, arguments.options);
  arguments.options.stop_on_signals = true;
  arguments.options.uses_network = false;
  if (!arguments.join.address.empty()) arguments.options.join = arguments.join;
  Run run(arguments.file, arguments.options);
  if (run.lacks_workers()) {
    run.prepare_data();  // once, before all workers need it
    if (const int code = launch_workers(run.config()); code != 0) throw CLI::RuntimeError(code);
    return;
  }
  const RunResult result = run.train();
  if (result.signal == 0) return;
  println("stopped; to resume: {}", resume_command(arguments, result.folder));
  throw CLI::RuntimeError(128 + result.signal);
}

// Text in lines of at most 100 characters, after an indent.
std::string wrapped(std::string_view text, size_t indent) {
  std::string lines;
  size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column == 0 || column + 1 + word.size() > 100) {
      lines += (column == 0 ? "" : "\n") + std::string(indent, ' ');
      column = indent;
    } else {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + '\n';
}

// The section of the help about strategies: names and keys, as each declares them.
std::string strategies_help() {
  std::string text = "Strategies (--set cluster.strategy=NAME):\n";
  for (const StrategyDescription& strategy : config_strategies()) {
    text += fmt::format("  {}\n{}",
                        strategy.names.empty() ? strategy.title : join(strategy.names, ", "),
                        wrapped(strategy.help, 6));
    for (const KeyDescription& key : strategy.keys)
      text += fmt::format("    {} = {}\n{}", key.name, key.default_value, wrapped(key.help, 6));
  }
  return text;
}

}  // namespace

void add_train(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a network as a TOML file describes");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  command->add_option("--out", arguments->options.out, "Folder of the run (default: runs/NAME)")
      ->type_name("DIR");
  command->add_option("--name", arguments->options.name, "Name of the run (default: that of FILE)")
      ->type_name("NAME");
  command->add_flag("--resume", arguments->options.resume,
                    "Continue from the newest checkpoint of the run");
  command->add_flag("--force", arguments->options.force,
                    "With --resume: even if data, network, optimizer, batch size or seed have "
                    "changed");
  command
      ->add_option("--join", arguments->join.address,
                   "Where the machines of the run meet (worker 0 listens); a run that is under way "
                   "is joined there, at any of its workers, or by its folder")
      ->type_name("HOST:PORT|DIR");
  command->add_option(
      "--rank", arguments->join.rank,
      "With --join: which worker this is, from 0 (default: in the order of arrival)");
  add_token(command, arguments->join.token, arguments->join.token_file,
            "With --join: a secret shared by all workers");
  command->add_option("--interface", arguments->join.interface,
                      "With --join: network interface to use");
  command
      ->add_option("--trace", arguments->options.trace,
                   "Write what each worker did when, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  command
      ->add_option(
          "--folds", arguments->folds,
          "Cross-validation: cut the training samples into N parts and train N times, each "
          "time without one of them, which is then evaluated")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
  command->add_flag("--dashboard", arguments->dashboard,
                    "Show this run and the others beside it in a browser while it trains");
  add_overrides(command, arguments->options.overrides);
  const auto shorthand = [&](const std::string& flags, const std::string& key,
                             const std::string& help) {
    command
        ->add_option_function<std::string>(
            flags,
            [arguments, key](const std::string& value) {
              arguments->options.overrides.push_back(key + "=" + value);
            },
            help + ": short for --set " + key + "=N")
        ->type_name("N");
  };
  shorthand("-n,--workers", "cluster.workers", "Number of workers");
  shorthand("--servers", "cluster.servers", "Number of parameter servers");
  shorthand("--threads", "cluster.threads", "Cores of each worker");
  shorthand("--lanes", "cluster.lanes", "Parts of a batch");
  command->footer(
      strategies_help() +
      "\nThe folder of the run gets the complete configuration, metrics (JSON lines and "
      "TensorBoard\n"
      "events), curves.svg and checkpoints. Ctrl-C stops after the current step, saves and says "
      "how\n"
      "to resume; a second one stops at once. docs/configuration.md lists all keys.\n\n"
      "Examples:\n"
      "  artel train examples/fashion_mnist.toml\n"
      "  artel train examples/mnist.toml --out runs/fast --set train.optimizer.lr=0.2\n"
      "  artel train examples/mnist.toml --out runs/fast --resume --set train.epochs=20\n"
      "  artel train examples/mnist.toml -n 4\n"
      "  artel train examples/mnist.toml --folds 5\n"
      "  artel train examples/mnist.toml -n 2 --dashboard\n"
      "  mpirun -n 4 artel train examples/mnist.toml");
  command->callback([arguments] { train(*arguments); });
}

}  // namespace artel::cli
