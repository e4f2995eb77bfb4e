#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/dashboard.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cluster/token.h"
#include "artel/dashboard/client.h"
#include "artel/dashboard/server.h"
#include "artel/observe/terminal.h"
#include "artel/run/report/live_view.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string run, folder = "runs", token, token_file, certificate;
  bool once = false, json = false;
  double interval = 1;
};

observe::LiveText look_of(std::FILE* stream) {
  const char* const no_colour = std::getenv("NO_COLOR");
  return {.width = observe::is_terminal(stream) ? observe::terminal_width(stream) : 120,
          .colour = observe::is_terminal(stream) && !(no_colour && *no_colour)};
}

std::string frame(const LiveView& view, const fs::path& run, const observe::LiveText& look) {
  std::string text;
  if (view.run)
    text =
        observe::live_text(*view.run, printable_line(run.string()), to_string(view.status), look);
  else if (view.status == RunStatus::running)
    text = fmt::format("{} has only just begun\n", printable_line(run.string()));
  if (const std::string end = ending_of(view, run); !end.empty()) text += printable(end) + '\n';
  return text;
}

// Draws over the last frame, which has `lines` lines on the screen. Returns the new number of
// lines.
int draw(const std::string& text, int lines) {
  const int height = observe::terminal_height(stdout);
  std::vector<std::string> shown = split(trim(text), '\n');
  if (std::ssize(shown) >= height) shown.resize(static_cast<size_t>(std::max(1, height - 1)));
  std::string out = lines > 0 ? fmt::format("\r\x1b[{}A\x1b[J", lines) : "";
  for (const std::string& line : shown) out += line + '\n';
  fmt::print("{}", out);
  std::fflush(stdout);
  return static_cast<int>(shown.size());
}

// HOST:PORT of a dashboard, or the same as a URL.
bool is_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  return colon != text.npos && colon + 1 < text.size() && !fs::exists(text) &&
         text.find_first_not_of("0123456789", colon + 1) == text.npos;
}

dashboard::Remote remote_of(const Arguments& arguments) {
  dashboard::Remote remote = {.address = arguments.run, .token = {}};
  const size_t scheme = remote.address.find("://");
  std::string host = remote.address.substr(scheme == remote.address.npos ? 0 : scheme + 3);
  host = host.substr(0, host.rfind(':'));
  const bool local = dashboard::is_loopback(host);
  if (scheme == remote.address.npos)
    remote.address = (local ? "http://" : "https://") + remote.address;
  if (!arguments.token.empty() || !arguments.token_file.empty())
    remote.token = given_token(arguments.token, arguments.token_file);
  else if (local)
    remote.token = own_dashboard_token();
  remote.certificate = arguments.certificate;
  if (arguments.certificate.empty() && fs::exists(own_certificate()))
    remote.certificate = own_certificate();
  return remote;
}

// Returns the run to display and its live state.
using Look = std::function<std::pair<fs::path, LiveView>()>;

Look look_of(const Arguments& arguments) {
  if (is_address(arguments.run))
    return [arguments, name = std::string()]() mutable {
      const dashboard::RemoteRun remote = dashboard::look_at(remote_of(arguments), name);
      name = remote.name;
      return std::pair(fs::path(name), remote.view);
    };
  fs::path run = arguments.run.empty() ? running_run(arguments.folder) : fs::path(arguments.run);
  if (!fs::exists(run) && fs::exists(fs::path(arguments.folder) / run))
    run = fs::path(arguments.folder) / run;
  return [run] { return std::pair(run, live_view(run)); };
}

void top(const Arguments& arguments) {
  const Look look = look_of(arguments);
  const bool live = !arguments.once && !arguments.json && observe::is_terminal(stdout);
  for (int lines = 0;;) {
    const auto [run, view] = look();
    if (arguments.json) return println("{}", to_json(view, run));
    const std::string text = frame(view, run, look_of(stdout));
    if (!live) {
      fmt::print("{}", text);
      return;
    }
    lines = draw(text, lines);
    if (view.status != RunStatus::running) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval));
  }
}

}  // namespace

void add_top(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("top", "Show the live activity of every worker of a running training");
  command->add_option("RUN", arguments->run,
                      "Run folder, or HOST:PORT of a dashboard (default: the newest run in "
                      "progress below --folder)");
  add_token(command, arguments->token, arguments->token_file, "Token of the dashboard",
            "File with the token (default: the user's own token, for a dashboard on this machine)");
  command
      ->add_option("--certificate", arguments->certificate,
                   "Certificate of the dashboard or of its authority (default: "
                   "~/.config/artel/dashboard.pem, or the system's trusted certificates)")
      ->type_name("FILE");
  command->add_option("--folder", arguments->folder, "Folder that contains the runs")
      ->capture_default_str();
  command->add_flag("--once", arguments->once, "Print once and exit");
  command->add_flag("--json", arguments->json, "Print JSON, for scripts");
  command->add_option("--interval", arguments->interval, "Seconds between updates")
      ->capture_default_str()
      ->check(at_least(0.1));
  command->footer(
      "One row per worker and server, the bottleneck first, and a one-sentence diagnosis.\n"
      "Columns: samples/s computed by the worker; compute, data, wait and net: shares of its "
      "time;\n"
      "wire: share in which its sums are in flight, mostly during computation; cores: in use and\n"
      "available; out and in: bytes sent and received; stale: mean staleness of pushes to a "
      "server.\n"
      "Narrow terminals show fewer columns. NO_COLOR=1 turns colours off. A pipe gets one\n"
      "snapshot.\n\n"
      "Examples:\n"
      "  artel top\n"
      "  artel top runs/mnist\n"
      "  artel top n01:6060 --token-file secret      # by HTTPS\n"
      "  artel top runs/mnist --once --json | jq '.live.workers[] | {name, computing}'");
  command->callback([arguments] { top(*arguments); });
}

}  // namespace artel::cli
