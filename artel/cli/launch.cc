#include "artel/cluster/launch.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cluster/token.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> hosts, command;
  std::string program = "artel", folder = std::filesystem::current_path();
  int port = 29400;
};

// How to run a command on another machine; the variable lets tests and unusual clusters replace it.
std::vector<std::string> remote_shell() {
  const char* given = std::getenv("ARTEL_SSH");
  return split(given ? given : "ssh -o BatchMode=yes", ' ');
}

// What the shell on a host runs: the command, with its place in the environment. The token comes by
// standard input, because anybody on either machine can see command lines.
std::string remote_command(const Arguments& arguments, const comm::GroupOptions& place) {
  std::string line = "cd " + shell_word(arguments.folder) +
                     " && IFS= read -r ARTEL_TOKEN && export ARTEL_TOKEN && exec env";
  for (const auto& [name, value] : worker_environment(place))
    if (name != "ARTEL_TOKEN") line += ' ' + shell_word(name + "=" + value);
  line += ' ' + shell_word(arguments.program);
  for (const std::string& word : arguments.command) line += ' ' + shell_word(word);
  // The user's own shell may be of any kind.
  return "exec sh -c " + shell_word(line);
}

void launch(const Arguments& arguments) {
  comm::GroupOptions place = {
      .transport = "gloo",
      .size = static_cast<int>(arguments.hosts.size()),
      .address = fmt::format("{}:{}", arguments.hosts.front(), arguments.port),
      .token = random_token()};
  std::vector<WorkerCommand> workers;
  for (; place.rank < place.size; ++place.rank) {
    const std::string& host = arguments.hosts[place.rank];
    require(!host.empty() && host[0] != '-', ErrorKind::invalid_argument,
            "[--hosts] got '{}', expected the name or address of a machine", host);
    std::vector<std::string> words = remote_shell();
    words.push_back(host);
    words.push_back(remote_command(arguments, place));
    workers.push_back({.name = fmt::format("worker {} on {}", place.rank, host),
                       .arguments = std::move(words),
                       .input = place.token + "\n"});
  }
  if (const int code = supervise(workers); code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void add_launch(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("launch", "Run a command as one worker on each of several machines");
  command
      ->add_option("--hosts", arguments->hosts,
                   "Machines, separated by commas; the first runs worker 0")
      ->delimiter(',')
      ->required();
  command->add_option("--port", arguments->port, "Where worker 0 listens")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  command->add_option("--program", arguments->program, "The program to run on each machine")
      ->capture_default_str();
  command->add_option("--folder", arguments->folder,
                      "Folder to run in on each machine (default: this one)");
  command->add_option("COMMAND", arguments->command, "What to run, after --")->required();
  command->footer(
      "The machines are reached through ssh, without a password. The environment variable "
      "ARTEL_SSH\n"
      "names another program, which is called with the host and a line for its shell, and passes\n"
      "its standard input on: that has the secret of the run. All machines need the same program,\n"
      "configuration and data.\n\n"
      "Examples:\n"
      "  artel launch --hosts n01,n02,n03 -- train examples/mnist.toml\n"
      "  artel launch --hosts n01,n02 --program /opt/artel/bin/artel -- train mnist.toml");
  command->callback([arguments] { launch(*arguments); });
}

}  // namespace artel::cli
