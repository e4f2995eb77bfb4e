#include "artel/cli/dashboard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/launch.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/token.h"
#include "artel/comm/control/socket.h"
#include "artel/dashboard/certificate.h"
#include "artel/dashboard/server.h"

namespace artel::cli {
namespace {

constexpr int kUsualPort = 6060;
constexpr const char* kStarted = "ARTEL_DASHBOARD";  // in the environment of those we start

struct Arguments {
  dashboard::ServerOptions options = {.folder = "runs"};
  std::string token_file;
  bool plain = false;
};

// Listens at the requested port, or by default at the usual port or, if it is taken, any free one.
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
  const bool local = dashboard::is_loopback(options.host);
  // Never ARTEL_TOKEN, which is a run's: browsers keep this one and send it with every request.
  if (!arguments.token_file.empty()) options.token = given_token("", arguments.token_file);
  // Others may have heard a token that was used without encryption.
  if (options.token.empty()) options.token = local ? own_dashboard_token() : random_token();
  if (!local && !arguments.plain && options.certificate.empty()) {
    options.certificate = own_certificate();
    std::vector<std::string> names = comm::control::own_addresses();
    names.insert(names.begin(), {host_name(), "localhost"});
    dashboard::make_certificate(options.certificate, names);
  }
  const std::unique_ptr<dashboard::Server> server = server_of(options);
  println("dashboard: {}", server->address());
  if (!options.certificate.empty())
    println("its certificate ({}) has the fingerprint {}", options.certificate.string(),
            dashboard::fingerprint_of(options.certificate));
  else if (!local)
    println("other machines can reach it with this token, and nothing is encrypted");
  server->run();
}

}  // namespace

std::string own_dashboard_token() { return private_token("dashboard"); }

std::filesystem::path own_certificate() { return configuration_folder() / "dashboard.pem"; }

DashboardBeside::DashboardBeside(const std::filesystem::path& folder) {
  if (std::getenv(kStarted)) return;
  std::filesystem::create_directories(folder);
  ::setenv(kStarted, "1", 1);
  std::vector<std::string> words = own_command_with({"dashboard", folder.string()});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  process_ = ::fork();
  require(process_ >= 0, ErrorKind::io, "[--dashboard] cannot start a process: {}",
          std::strerror(errno));
  if (process_ > 0) return;
  // Ctrl-C is for the training, which ends this process when it is done; so does its death.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::signal(SIGINT, SIG_IGN);
  (void)!::nice(10);
  ::execvp(arguments.front(), arguments.data());
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
      program.add_subcommand("dashboard", "Show running and finished runs in a browser");
  command
      ->add_option("FOLDER", arguments->options.folder,
                   "Folder that contains the runs, or a run folder")
      ->capture_default_str();
  command->add_option("--host", arguments->options.host, "Address to listen on")
      ->capture_default_str();
  command
      ->add_option("--port", arguments->options.port,
                   "Port to listen on (default: 6060, or a free port)")
      ->check(CLI::Range(1, 65535));
  add_token(command, arguments->options.token, arguments->token_file,
            "Token of the dashboard (default: the user's own on the loopback interface, otherwise "
            "random)",
            "File with the token");
  command
      ->add_option("--certificate", arguments->options.certificate,
                   "PEM file with a certificate and its key, for HTTPS (default: a self-signed "
                   "one, unless the address is a loopback address)")
      ->type_name("FILE");
  command
      ->add_flag("--plain", arguments->plain,
                 "Use HTTP even if other machines can reach the address")
      ->excludes("--certificate");
  command->footer(
      "Curves, workers, events, configurations and notes of all runs in the folder, updated while\n"
      "they are trained. It reads the folder only, and writes nothing but notes.txt in runs. At\n"
      "/metrics it answers Prometheus. Only this machine can reach it unless --host says "
      "otherwise. Every request needs the token.\n\n"
      "Examples:\n"
      "  artel dashboard\n"
      "  artel dashboard experiments --port 8080\n"
      "  artel dashboard --host 0.0.0.0              # HTTPS; prints an address with a token\n"
      "  artel train mnist.toml --dashboard          # together with a training");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace artel::cli
