#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/dashboard.h"
#include "artel/cli/folds.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/train_file.h"
#include "artel/cli/workers.h"
#include "artel/cluster/launcher.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/run.h"

namespace artel::cli {
namespace {

// Where the workers of the run meet; no address if a launcher starts them. `join` may name the
// run's folder, whose list of workers is gone when the run has ended.
MeetingPlace meeting_place(MeetingPlace join) {
  if (!std::filesystem::is_directory(join.address)) return join;
  const RunWorkers workers = RunFolder(join.address).load_workers();
  join.address = workers.address;
  join.token = workers.address.empty() ? "" : workers.token;
  return join;
}

// The command that resumes the run. Where the workers were started one by one, it is the same on
// each machine: the worker on the machine of the address becomes worker 0.
std::string resume_command(const TrainArguments& arguments, const MeetingPlace& join,
                           const std::filesystem::path& folder) {
  std::string line = fmt::format("{} train {}", launcher_command(), shell_word(arguments.file));
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) line += fmt::format(" {} {}", option, shell_word(value));
  };
  if (!join.address.empty()) {
    add("--join", join.address);
    add("--token-file", join.token_file);
    add("--interface", join.interface);
  }
  add("--out", folder.string());
  line += " --resume";
  for (const std::string& text : arguments.options.overrides) add("--set", text);
  // A secret has no place in a log.
  return line + (join.token.empty() ? "" : " (with the same --token)");
}

// True if this worker prints how to resume: worker 0, and each worker started by hand.
bool tells_how_to_resume(const TrainArguments& arguments, const RunResult& result) {
  return result.rank == 0 || (!arguments.join.address.empty() && !launched_group());
}

void tell_how_to_resume(const TrainArguments& arguments, const MeetingPlace& join,
                        const RunResult& result) {
  const std::filesystem::path folder =
      result.folder.empty() ? result.fit.checkpoints.parent_path() : result.folder;
  println("stopped{}{}; to resume{}: {}", result.fit.stopped_at.empty() ? "" : " by ",
          result.fit.stopped_at, join.address.empty() ? "" : ", on each machine",
          resume_command(arguments, join, folder));
}

// For a run that has ended early, if it has a checkpoint.
void tell_how_to_resume_early_end(const TrainArguments& arguments, const MeetingPlace& join,
                                  std::string_view what) {
  const RunOptions& options = arguments.options;
  const RunFolder folder = choose_folder({arguments.file, options.out, options.name, true});
  if (std::filesystem::exists(folder.checkpoints()))
    println("{}; to resume: {}", what, resume_command(arguments, join, folder.path()));
}

// The folder that contains the run.
std::filesystem::path folder_of_runs(const RunOptions& options) {
  if (options.out.empty()) return "runs";
  const std::filesystem::path parent = std::filesystem::path(options.out).parent_path();
  return parent.empty() ? "." : parent;
}

}  // namespace

void train(TrainArguments& arguments) {
  std::optional<DashboardBeside> dashboard;
  if (arguments.dashboard) dashboard.emplace(folder_of_runs(arguments.options));
  if (arguments.folds > 0)
    return cross_validate(arguments.file, arguments.folds, arguments.options);
  arguments.options.stop_on_signals = true;
  arguments.options.uses_network = false;
  if (!arguments.join.address.empty()) {
    require(!std::getenv(kLauncherVariable), ErrorKind::invalid_argument,
            "--join: got {}, but `artel launch` says where the workers meet; leave --join out",
            arguments.join.address);
    arguments.options.join = arguments.join;
  }
  Run run(arguments.file, arguments.options);
  if (run.lacks_workers()) {
    run.prepare_data();  // once, before all workers need it
    const int code = launch_here(local_run(run.config()));
    // After signals killed all workers, only the launcher can tell.
    if (code > 128 && code != 128 + SIGINT && code != 128 + SIGTERM)
      tell_how_to_resume_early_end(arguments, {}, "no worker is left");
    if (code != 0) throw CLI::RuntimeError(code);
    return;
  }
  const MeetingPlace join = meeting_place(arguments.join);
  RunResult result;
  try {
    result = run.train();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled && speaks_for_the_run())
      tell_how_to_resume_early_end(arguments, join, "the run has ended early");
    throw;
  }
  if (result.signal == 0) return;
  if (tells_how_to_resume(arguments, result)) tell_how_to_resume(arguments, join, result);
  throw CLI::RuntimeError(128 + result.signal);
}

namespace {

using SharedArguments = std::shared_ptr<TrainArguments>;

void add_basics(CLI::App* command, const SharedArguments& arguments) {
  RunOptions& options = arguments->options;
  command->add_option("--out", options.out, "Run folder (default: runs/NAME)")->type_name("DIR");
  command->add_option("--name", options.name, "Name of the run (default: the name of FILE)")
      ->type_name("NAME");
  add_overrides(command, options.overrides);
  const auto shorthand = [&](const std::string& flags, const std::string& key,
                             const std::string& help, const std::string& value = "N") {
    command
        ->add_option_function<std::string>(
            flags,
            [arguments, key](const std::string& given) {
              arguments->options.overrides.push_back(key + "=" + given);
            },
            fmt::format("{} ({})", help, key))
        ->type_name(value);
  };
  shorthand("-n,--workers", "cluster.workers", "Number of workers");
  shorthand("--threads", "cluster.threads", "Cores per worker");
  shorthand("--device", "cluster.device", "Where workers compute: cpu, opencl, opencl:N, or auto",
            "DEVICE");
  shorthand("--lanes", "cluster.lanes", "Number of parts of a batch; determines the bits");
  shorthand("--servers", "cluster.servers", "Number of parameter servers");
  command->add_flag("--resume", options.resume, "Continue from the newest checkpoint of the run");
  command->add_flag("--force", options.force,
                    "With --resume: continue even if data, network, optimizer, batch size or seed "
                    "have changed");
  command->add_flag("--untested-device", options.untested_device,
                    "Compute on a device even if it fails its self-test");
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

void add_joining(CLI::App* command, TrainArguments& arguments) {
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

void add_training(CLI::App* command, const SharedArguments& arguments) {
  add_basics(command, arguments);
  add_joining(command, *arguments);
}

void add_train(CLI::App& program) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = program.add_subcommand("train", "Train a network as a TOML file describes");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  add_training(command, arguments);
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
