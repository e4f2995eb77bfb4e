#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/entrance.h"
#include "artel/run/folder/run_folder.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string run;
  int worker = 0;
  double seconds = 600;
};

void leave(const Arguments& arguments) {
  const RunWorkers run = RunFolder(arguments.run).load_workers();
  const auto found = std::find_if(
      run.workers.begin(), run.workers.end(),
      [&](const RunWorkers::Worker& worker) { return worker.number == arguments.worker; });
  std::vector<int> numbers;
  for (const RunWorkers::Worker& worker : run.workers) numbers.push_back(worker.number);
  require(found != run.workers.end(), ErrorKind::not_found,
          "[{}] worker: got {}, expected one of {}", arguments.run, arguments.worker,
          fmt::join(numbers, ", "));
  ask_to_leave({.door = found->door, .token = run.token, .encrypt = run.encrypt},
               Deadline::after(arguments.seconds));
  println("worker {} (process {} on host {}) has left {}", found->number, found->process,
          found->host, arguments.run);
}

}  // namespace

void add_leave(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("leave", "Remove a worker from a run; the others continue");
  command->add_option("RUN", arguments->run, "Run folder")->required();
  command->add_option("WORKER", arguments->worker, "Number of the worker, as shown in the log")
      ->required();
  command->add_option("--timeout", arguments->seconds, "Seconds to wait until the worker has left")
      ->capture_default_str()
      ->check(at_least(1));
  command->footer(
      "The worker finishes its current step, hands its lanes over to the others and ends with code "
      "0,\n"
      "as it does after a termination signal (SIGTERM). The result is the same, bit for bit. A "
      "new\n"
      "worker joins with artel train FILE --join RUN.\n\n"
      "Examples:\n"
      "  artel leave runs/mnist 2");
  command->callback([arguments] { leave(*arguments); });
}

}  // namespace artel::cli
