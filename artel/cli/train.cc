#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/dashboard.h"
#include "artel/cli/folds.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/workers.h"
#include "artel/cluster/launcher.h"
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

// The command that resumes the run, to be given on each machine where the workers were started one
// by one.
std::string resume_command(const Arguments& arguments, const std::filesystem::path& folder) {
  std::string line = fmt::format("{} train {}", launcher_command(), shell_word(arguments.file));
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) line += fmt::format(" {} {}", option, shell_word(value));
  };
  const MeetingPlace& join = arguments.join;
  if (!join.address.empty() && !std::filesystem::is_directory(join.address)) {
    add("--join", join.address);
    if (join.rank >= 0) add("--rank", std::to_string(join.rank));
    add("--token-file", join.token_file);
    add("--interface", join.interface);
  }
  add("--out", folder.string());
  line += " --resume";
  for (const std::string& text : arguments.options.overrides) add("--set", text);
  // A secret has no place in a log.
  return line + (join.token.empty() ? "" : " (with the same --token)");
}

// Whether this worker tells its user how to resume: worker 0 does, and so does each worker that was
// started by hand.
bool tells_how_to_resume(const Arguments& arguments, const RunResult& result) {
  return result.rank == 0 || (!arguments.join.address.empty() && !launched_group());
}

void tell_how_to_resume(const Arguments& arguments, const RunResult& result) {
  const std::filesystem::path folder =
      result.folder.empty() ? result.fit.checkpoints.parent_path() : result.folder;
  println("stopped{}{}; to resume{}: {}", result.fit.stopped_at.empty() ? "" : " by ",
          result.fit.stopped_at, arguments.join.address.empty() ? "" : ", on each machine",
          resume_command(arguments, folder));
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
  if (tells_how_to_resume(arguments, result)) tell_how_to_resume(arguments, result);
  throw CLI::RuntimeError(128 + result.signal);
}

using SharedArguments = std::shared_ptr<Arguments>;

void add_basics(CLI::App* command, const SharedArguments& arguments) {
  RunOptions& options = arguments->options;
  command->add_option("--out", options.out, "Run folder (default: runs/NAME)")->type_name("DIR");
  command->add_option("--name", options.name, "Name of the run (default: the name of FILE)")
      ->type_name("NAME");
  add_overrides(command, options.overrides);
  const auto shorthand = [&](const std::string& flags, const std::string& key,
                             const std::string& help) {
    command
        ->add_option_function<std::string>(
            flags,
            [arguments, key](const std::string& value) {
              arguments->options.overrides.push_back(key + "=" + value);
            },
            fmt::format("{} ({})", help, key))
        ->type_name("N");
  };
  shorthand("-n,--workers", "cluster.workers", "Number of workers");
  shorthand("--threads", "cluster.threads", "Cores of each worker");
  shorthand("--lanes", "cluster.lanes", "Parts of a batch, whose number determines the bits");
  shorthand("--servers", "cluster.servers", "Number of parameter servers");
  command->add_flag("--resume", options.resume, "Continue from the newest checkpoint of the run");
  command->add_flag("--force", options.force,
                    "With --resume: even if data, network, optimizer, batch size or seed have "
                    "changed");
  command->add_flag("--dashboard", arguments->dashboard,
                    "Show this run and its neighbours in a browser while it trains");
  command->add_option("--folds", arguments->folds, "N-fold cross-validation")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
  command
      ->add_option("--trace", options.trace,
                   "Write a timeline of all workers (Perfetto, chrome://tracing)")
      ->type_name("FILE");
}

void add_joining(CLI::App* command, Arguments& arguments) {
  MeetingPlace& join = arguments.join;
  const char* const group = "Several machines";
  command
      ->add_option("--join", join.address,
                   "Rendezvous address or run folder. Worker 0 listens there; late workers join a "
                   "running training at the same port of any of its machines. Several addresses, "
                   "separated by commas, are tried in turn")
      ->type_name("HOST:PORT,...|DIR")
      ->group(group);
  command
      ->add_option("--rank", join.rank, "Number of this worker (default: in the order of arrival)")
      ->group(group);
  add_token(command, join.token, join.token_file, "Secret shared by all workers");
  command->get_option("--token")->group(group);
  command->get_option("--token-file")->group(group);
  command->add_option("--interface", join.interface, "Network interface to use")->group(group);
}

}  // namespace

void add_train(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a network as a TOML file describes");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  add_basics(command, arguments);
  add_joining(command, *arguments);
  command->footer(
      "The run folder gets the complete configuration, metrics (JSON lines and TensorBoard "
      "events),\n"
      "curves.svg and checkpoints. Ctrl-C stops after the current step, saves, and prints how to\n"
      "resume; a second one stops at once.\n\n"
      "Examples:\n"
      "  artel train examples/fashion_mnist.toml\n"
      "  artel train examples/mnist.toml --out runs/fast --set train.optimizer.lr=0.2\n"
      "  artel train examples/mnist.toml --out runs/fast --resume --set train.epochs=20\n"
      "  artel train examples/mnist.toml -n 4\n"
      "  artel train examples/mnist.toml --folds 5\n"
      "  artel train examples/mnist.toml -n 2 --dashboard\n"
      "  mpirun -n 4 artel train examples/mnist.toml\n\n"
      "`artel config` prints all keys, `artel config --strategies` how workers can train "
      "together.");
  command->callback([arguments] { train(*arguments); });
}

}  // namespace artel::cli
