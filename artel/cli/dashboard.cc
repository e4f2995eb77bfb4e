#include "artel/cli/dashboard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/token.h"
#include "artel/dashboard/server.h"

namespace artel::cli {
namespace {

constexpr int kUsualPort = 6060;
constexpr const char* kStarted = "ARTEL_DASHBOARD";  // in the environment of those we start

struct Arguments {
  dashboard::ServerOptions options = {.folder = "runs"};
  std::string token_file;
};

// At the usual port, or else at any that is free, unless one was asked for.
std::unique_ptr<dashboard::Server> server_of(dashboard::ServerOptions options) {
  if (options.port > 0) return std::make_unique<dashboard::Server>(options);
  options.port = kUsualPort;
  try {
    return std::make_unique<dashboard::Server>(options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
  }
  options.port = 0;
  return std::make_unique<dashboard::Server>(options);
}

void serve(Arguments& arguments) {
  dashboard::ServerOptions& options = arguments.options;
  // The token of a run that the environment has is not meant for this machine's own browsers.
  if (!dashboard::is_loopback(options.host) || !arguments.token_file.empty())
    options.token = given_token(options.token, arguments.token_file);
  if (!dashboard::is_loopback(options.host) && options.token.empty())
    options.token = random_token();
  const std::unique_ptr<dashboard::Server> server = server_of(options);
  println("dashboard: {}", server->address());
  if (!dashboard::is_loopback(options.host))
    println("other machines can reach it, but only with this token; nothing is encrypted");
  server->run();
}

}  // namespace

DashboardBeside::DashboardBeside(const std::filesystem::path& folder) {
  if (std::getenv(kStarted)) return;
  std::filesystem::create_directories(folder);
  ::setenv(kStarted, "1", 1);
  const std::string path = folder.string();
  std::fflush(nullptr);
  process_ = ::fork();
  require(process_ >= 0, ErrorKind::io, "[--dashboard] cannot start a process: {}",
          std::strerror(errno));
  if (process_ > 0) return;
  // Ctrl-C is for the training, which ends this process when it is done; so does its death.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGINT, SIG_IGN);
  (void)!::nice(10);
  ::execl("/proc/self/exe", "artel", "dashboard", path.c_str(), nullptr);
  ::_exit(127);
}

DashboardBeside::~DashboardBeside() {
  if (process_ < 0) return;
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
}

void add_dashboard(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("dashboard", "Show runs in a browser, also while they are trained");
  command->add_option("FOLDER", arguments->options.folder, "Folder of runs, or of one run")
      ->capture_default_str();
  command->add_option("--host", arguments->options.host, "Address to listen at")
      ->capture_default_str();
  command
      ->add_option("--port", arguments->options.port,
                   "Port to listen at (default: 6060, or any that is free)")
      ->check(CLI::Range(1, 65535));
  add_token(command, arguments->options.token, arguments->token_file,
            "What browsers must know (default: none at this machine's own address, else a random "
            "one)");
  command->footer(
      "Curves, workers, events, configurations and notes of all runs in the folder, updated while\n"
      "they are trained. It reads the folder only, and writes nothing but notes.txt in runs. At\n"
      "/metrics it answers Prometheus. Only this machine can reach it unless --host says "
      "otherwise.\n\n"
      "Examples:\n"
      "  artel dashboard\n"
      "  artel dashboard experiments --port 8080\n"
      "  artel dashboard --host 0.0.0.0              # prints an address with a token\n"
      "  artel train mnist.toml --dashboard          # beside a training");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace artel::cli
