#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
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
};

std::string resume_command(const Arguments& arguments, const std::filesystem::path& folder) {
  std::string line = fmt::format("artel train {} --out {} --resume", shell_word(arguments.file),
                                 shell_word(folder.string()));
  for (const std::string& text : arguments.options.overrides) line += " --set " + shell_word(text);
  return line;
}

// Runs this command once for each worker and server.
int launch_workers(const RunConfig& config) {
  return launch_here({.workers = static_cast<int>(config.cluster.workers),
                      .servers = server_count(config),
                      .outlives_workers = outlives_workers(config),
                      .servers_inside = config.cluster.servers_inside,
                      .transport = config.cluster.transport});
}

void train(Arguments& arguments) {
  arguments.options.stop_on_signals = true;
  if (!arguments.join.address.empty()) arguments.options.join = arguments.join;
  Run run(arguments.file, arguments.options);
  if (run.lacks_workers()) {
    run.prepare_data();  // once, before all workers want it
    if (const int code = launch_workers(run.config()); code != 0) throw CLI::RuntimeError(code);
    return;
  }
  const RunResult result = run.train();
  if (result.signal == 0) return;
  println("stopped; to go on: {}", resume_command(arguments, result.folder));
  throw CLI::RuntimeError(128 + result.signal);
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
                    "Go on from the newest checkpoint of the run");
  command
      ->add_option("--join", arguments->join.address,
                   "Meet the other machines there (worker 0 listens)")
      ->type_name("HOST:PORT");
  command->add_option("--rank", arguments->join.rank,
                      "With --join: which worker this is, from 0 (default: as they come)");
  command->add_option("--token", arguments->join.token,
                      "With --join: a secret that all workers give");
  command->add_option("--interface", arguments->join.interface,
                      "With --join: network interface to use");
  command
      ->add_option("--trace", arguments->options.trace,
                   "Write what each worker did when, for Perfetto or chrome://tracing")
      ->type_name("FILE");
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
  shorthand("--servers", "cluster.servers", "Number of parameter servers beside them");
  shorthand("--threads", "cluster.threads", "Cores of each worker");
  shorthand("--lanes", "cluster.lanes", "Parts of a batch");
  command->footer(
      "The folder of the run gets the complete configuration, metrics (JSON lines and TensorBoard\n"
      "events), curves.svg and checkpoints. Ctrl-C stops after the current step, saves and says "
      "how\n"
      "to go on; a second one stops at once. docs/configuration.md lists all keys.\n\n"
      "Examples:\n"
      "  artel train examples/fashion_mnist.toml\n"
      "  artel train examples/mnist.toml --out runs/fast --set train.optimizer.lr=0.2\n"
      "  artel train examples/mnist.toml --out runs/fast --resume --set train.epochs=20\n"
      "  artel train examples/mnist.toml -n 4\n"
      "  mpirun -n 4 artel train examples/mnist.toml");
  command->callback([arguments] { train(*arguments); });
}

}  // namespace artel::cli
