#include "artel/cluster/launch.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/base/version.h"
#include "artel/cli/commands.h"
#include "artel/cli/remote_shell.h"
#include "artel/cluster/host_check.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/remote_run.h"
#include "artel/cluster/token.h"
#include "artel/exec/instructions.h"
#include "artel/run/config/config.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string hosts;
  std::vector<std::string> command;
  std::string program = "artel", folder = std::filesystem::current_path();
  std::string token_file;
  int port = 29400;
  bool install = false, describe = false, follow = false;
  bool runs_program = false;  // `command` is a program of its own, not a command of artel
};

std::vector<std::string> hosts_of(const Arguments& arguments) {
  std::vector<std::string> hosts = split(arguments.hosts, ',');
  for (std::string& host : hosts) {
    host = trim(host);
    require(!host.empty() && host[0] != '-', ErrorKind::invalid_argument,
            "[--hosts] got '{}', expected the name or address of a machine", host);
  }
  return hosts;
}

// The machine of "user@machine".
std::string machine_of(const std::string& host) { return host.substr(host.find('@') + 1); }

std::string own_instructions() { return instruction_names()[best_instructions()]; }

// The configuration of the command, as far as this machine knows it: the first existing TOML file
// among its words, and all settings after --set.
RunConfig config_of(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.command;
  std::vector<std::string> overrides;
  std::filesystem::path file;
  for (size_t i = 0; i < words.size(); ++i) {
    constexpr std::string_view kSet = "--set";
    if (words[i].starts_with("--set="))
      overrides.push_back(words[i].substr(kSet.size() + 1));
    else if (i > 0 && words[i - 1] == kSet)
      overrides.push_back(words[i]);
    else if (const auto path = std::filesystem::path(arguments.folder) / words[i];
             file.empty() && words[i].ends_with(".toml") && std::filesystem::is_regular_file(path))
      file = path;
  }
  try {
    return file.empty() ? default_config(overrides) : read_config(file, overrides);
  } catch (const Error& error) {
    // The command is another program, or reports the error itself.
    log(LogLevel::debug, "the launcher does not understand the configuration: {}", error.what());
    return {};
  }
}

// Throws, after a line for each host that cannot be used, and starts nothing. Returns the program
// on each host.
std::map<std::string, std::string> usable_programs(const Arguments& arguments,
                                                   const std::vector<std::string>& hosts) {
  const HostCheckOptions options = {.shell = remote_shell(),
                                    .program = arguments.program,
                                    .folder = arguments.folder,
                                    .version = std::string(kHeaderVersion)};
  std::vector<HostReport> reports = check_hosts(hosts, options);
  if (arguments.install) {
    std::vector<std::string> installed;
    for (HostReport& report : reports) {
      const bool has_other = report.problem.empty() && report.build != build_id();
      if (!report.lacks_program && !has_other) continue;
      log(LogLevel::info, "{}: installing {}", report.host, arguments.program);
      report.problem = install_program(report.host, options);
      if (report.problem.empty()) installed.push_back(report.host);
    }
    for (const HostReport& again : check_hosts(installed, options))
      *std::ranges::find(reports, again.host, &HostReport::host) = again;
  }
  std::map<std::string, std::string> programs;
  for (const HostReport& report : reports) {
    if (report.problem.empty())
      programs[report.host] = report.program;
    else
      log(LogLevel::error, "{}: {}", report.host, report.problem);
  }
  require(programs.size() == reports.size(), ErrorKind::invalid_argument,
          "[--hosts] {} of {} cannot be used; nothing was started",
          reports.size() - programs.size(), counted(reports.size(), "host"));
  if (const std::string builds = different(&HostReport::build, reports); !builds.empty())
    log(LogLevel::warning,
        "[--hosts] the builds of artel {} differ: {}; results may differ in their last bits; try "
        "--install",
        kHeaderVersion, builds);
  const std::string differ = different(&HostReport::instructions, reports);
  const bool agree = config_of(arguments).cluster.instructions != RunConfig().cluster.instructions;
  require(differ.empty() || agree, ErrorKind::invalid_argument,
          "[--hosts] the processors differ: {}; try --set cluster.instructions=common", differ);
  return programs;
}

// The beginning of the command that resumes the run on the same machines.
std::string launcher_words(const Arguments& arguments) {
  std::string words = "artel launch --hosts " + shell_word(arguments.hosts);
  if (arguments.port != Arguments().port) words += fmt::format(" --port {}", arguments.port);
  if (!arguments.token_file.empty()) words += " --token-file " + shell_word(arguments.token_file);
  if (arguments.program != "artel") words += " --program " + shell_word(arguments.program);
  if (arguments.folder != Arguments().folder) words += " --folder " + shell_word(arguments.folder);
  return words + " --";
}

bool is_on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  return std::ranges::any_of(split(path ? path : "", ':'), [&](const std::string& folder) {
    return ::access((std::filesystem::path(folder) / program).c_str(), X_OK) == 0;
  });
}

// True if the command is a program of its own, such as python3, and not one of `own_commands`.
// Throws if it is neither.
bool is_program(const std::string& word, const std::vector<std::string>& own_commands) {
  if (word.starts_with('-') || std::ranges::count(own_commands, word) > 0) return false;
  require(word.find('/') != word.npos || is_on_path(word), ErrorKind::invalid_argument,
          "[launch] '{}' is neither a command of artel nor a program on this machine{}", word,
          did_you_mean(word, own_commands));
  return true;
}

// The shell command for a host: the command, with its place in the environment. The token comes by
// standard input, because command lines are visible to all users of both machines. With `doors` it
// joins a run in progress.
std::string remote_command(const Arguments& arguments, const std::string& program,
                           const comm::GroupOptions& place, const std::string& doors = "") {
  std::string line = "cd " + shell_word(arguments.folder) + " && exec env " +
                     shell_word(kLauncherVariable + ("=" + launcher_words(arguments)));
  for (const auto& [name, value] : worker_environment(place))
    if (name != "ARTEL_TOKEN") line += ' ' + shell_word(name + "=" + value);
  if (!doors.empty()) line += ' ' + shell_word(kDoorsVariable + ("=" + doors));
  line += ' ' + shell_word(program) + " launch --follow --";
  if (!arguments.runs_program) line += ' ' + shell_word(program);
  for (const std::string& word : arguments.command) line += ' ' + shell_word(word);
  // The user's own shell may be of any kind.
  return "exec sh -c " + shell_word(line);
}

void launch(Arguments& arguments, const std::vector<std::string>& own_commands) {
  const std::vector<std::string> hosts = hosts_of(arguments);
  require(!arguments.command.empty(), ErrorKind::invalid_argument,
          "[launch] got no command; try artel launch --hosts {} -- train FILE", arguments.hosts);
  require(std::filesystem::path(arguments.command.front()).filename() != "artel",
          ErrorKind::invalid_argument,
          "[launch] the command begins with '{}', which is understood; try artel launch --hosts {} "
          "-- train FILE",
          arguments.command.front(), arguments.hosts);
  arguments.runs_program = is_program(arguments.command.front(), own_commands);
  std::map<std::string, std::string> programs = usable_programs(arguments, hosts);
  comm::GroupOptions place = {
      .transport = "gloo",
      .size = static_cast<int>(hosts.size()),
      .address = fmt::format("{}:{}", machine_of(hosts.front()), arguments.port),
      .token = given_token("", arguments.token_file)};
  if (place.token.empty()) place.token = random_token();
  const ClusterConfig cluster = config_of(arguments).cluster;
  const double patience = cluster.patience;
  std::vector<RemoteWorker> workers;
  for (; place.rank < place.size; ++place.rank) {
    const std::string& host = hosts[place.rank];
    const auto words = [=, program = programs[host]](const std::string& doors) {
      std::vector<std::string> shell = remote_shell(patience);
      shell.push_back(host);
      shell.push_back(remote_command(arguments, program, place, doors));
      return shell;
    };
    workers.push_back({.name = fmt::format("worker {} on {}", place.rank, host),
                       .label = std::ranges::count(hosts, host) == 1
                                    ? host
                                    : fmt::format("{} {}", host, place.rank),
                       .arguments = words(""),
                       .secret = place.token,
                       .again = words});
  }
  if (const int code = run_remotely(workers, static_cast<int>(cluster.restarts)); code != 0)
    throw CLI::RuntimeError(code);
}

void run_launch(Arguments& arguments, const CLI::App& program) {
  if (arguments.describe) {
    fmt::print("{}", describe_program(std::string(kHeaderVersion), own_instructions(), build_id()));
  } else if (arguments.follow) {
    if (const int code = follow_launcher(arguments.command); code != 0)
      throw CLI::RuntimeError(code);
  } else {
    require(!arguments.hosts.empty(), ErrorKind::invalid_argument,
            "[--hosts] got none, expected the names of machines, separated by commas");
    std::vector<std::string> own_commands;
    for (const CLI::App* command : program.get_subcommands({}))
      own_commands.push_back(command->get_name());
    launch(arguments, own_commands);
  }
}

}  // namespace

void add_launch(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("launch", "Run a command as one worker on each of several machines");
  command
      ->add_option("--hosts", arguments->hosts,
                   "Machines, separated by commas; the first runs worker 0")
      ->type_name("HOST,HOST...");
  command->add_option("--port", arguments->port, "Port of worker 0")
      ->capture_default_str()
      ->check(CLI::Range(1, 65535));
  command->add_option("--program", arguments->program, "Path of the program on each machine")
      ->capture_default_str();
  command->add_option("--folder", arguments->folder,
                      "Working folder on each machine (default: this one)");
  command
      ->add_option("--token-file", arguments->token_file,
                   "File with the secret of the run, for machines that join later (default: the "
                   "variable ARTEL_TOKEN, else a random one)")
      ->type_name("FILE");
  command->add_flag("--install", arguments->install,
                    "Copy this program to machines that lack it or have another build (to "
                    "~/.local/bin, or to the path of --program)");
  // For the launcher's own use on the other machines.
  command->add_flag("--describe", arguments->describe)->group("");
  command->add_flag("--follow", arguments->follow)->group("");
  command->add_option("COMMAND", arguments->command,
                      "Command of artel, or a program with its arguments, to run, after --");
  command->footer(
      "Connects to the machines with ssh, without a password. Checks all machines first and "
      "starts\n"
      "nothing if one of them cannot be used. All machines need the same configuration and data.\n"
      "Each line of output starts with the name of its machine. Ctrl-C stops the run after the\n"
      "current step; a second Ctrl-C stops it at once.\n\n"
      "The environment variable ARTEL_SSH selects another program instead of ssh. It is called "
      "with\n"
      "the host and a shell command, and must forward standard input, which carries the secret of\n"
      "the run.\n\n"
      "Examples:\n"
      "  artel launch --hosts n01,n02,n03 -- train examples/mnist.toml\n"
      "  artel launch --hosts n01,n02 --install -- train mnist.toml --out runs/a\n"
      "  artel launch --hosts n01,n02 --program /opt/artel/bin/artel -- train mnist.toml\n"
      "  artel launch --hosts n01,n02 -- python3 script.py");
  command->callback([arguments, &program] { run_launch(*arguments, program); });
}

}  // namespace artel::cli
