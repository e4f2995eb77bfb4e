#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/process.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/remote_shell.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/terminal.h"
#include "artel/observe/trace_summary.h"
#include "artel/run/folder/run_elsewhere.h"
#include "artel/run/report/live_view.h"
#include "artel/run/report/trace_request.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string subject, folder = "runs", out;
  TraceWish wish;
  bool json = false;
};

void summarize(const fs::path& file, bool json) {
  observe::Trace trace;
  trace.load(file);
  const auto summary = observe::summarize(trace);
  require(summary.has_value(), ErrorKind::not_found,
          "[{}] has no step that all workers have made; expected a trace of `artel trace RUN` or "
          "`artel train --trace`",
          file.string());
  if (json) return println("{}", to_json(*summary));
  constexpr int kWidth = 100;
  fmt::print("{}", to_text(*summary, observe::is_terminal(stdout) ? observe::terminal_width(stdout)
                                                                  : kWidth));
}

// The folder of a run on this machine: its own, or that of a worker here if another machine has it.
struct Place {
  fs::path folder;
  std::string machine = {};  // empty: this one
};
Place place_of(const Arguments& arguments) {
  const auto elsewhere = [](const fs::path& run) -> std::optional<Place> {
    const auto found = find_run_elsewhere(run);
    return found ? std::optional(Place{found->here, found->machine}) : std::nullopt;
  };
  const fs::path run = arguments.subject, inside = fs::path(arguments.folder) / run;
  if (run.empty()) {
    try {
      return {running_run(arguments.folder)};
    } catch (const Error&) {
      if (const auto found = elsewhere({})) return *found;
      throw;
    }
  }
  for (const fs::path& path : {run, inside}) {
    if (fs::exists(path)) return {path};
    if (const auto found = elsewhere(path)) return *found;
  }
  return {run};
}

// The file here for the trace of a run on another machine.
fs::path trace_file(const Arguments& arguments) {
  return fs::absolute(arguments.out.empty() ? "trace.json" : arguments.out);
}

// "n01:runs/a", a run that worker 0 keeps on another machine; nothing for a path on this one.
std::optional<std::pair<std::string, std::string>> machine_and_run(const std::string& subject) {
  const size_t colon = subject.find(':');
  if (colon == subject.npos || colon == 0 || subject.starts_with('-') || fs::exists(subject))
    return {};
  return std::pair(subject.substr(0, colon), subject.substr(colon + 1));
}

// Has the program on that machine trace the run, and brings the file here.
fs::path trace_there(const std::string& host, const std::string& run, const Arguments& arguments) {
  const std::string line = fmt::format(
      "PATH=$PATH:$HOME/.local/bin; artel trace {0} --steps {1} --timeout {2} --json >/dev/null && "
      "cat {0}/trace.json",
      shell_word(run), arguments.wish.steps, arguments.wish.timeout);
  const fs::path file = trace_file(arguments);
  std::vector<std::string> words = {"sh", "-c", "out=$1; shift; exec \"$@\" >\"$out\"", "sh",
                                    file.string()};
  for (const std::string& word : remote_shell()) words.push_back(word);
  words.push_back(host);
  words.push_back("exec sh -c " + shell_word(line));
  const double seconds = arguments.wish.timeout * static_cast<double>(1 + arguments.wish.steps);
  const ProcessResult result = run_program(words, ".", Deadline::after(seconds));
  require(result.exit_code == 0, ErrorKind::communication, "[{}] {}", host, trim(result.output));
  return file;
}

void trace(const Arguments& arguments) {
  if (fs::is_regular_file(arguments.subject)) return summarize(arguments.subject, arguments.json);
  if (const auto there = machine_and_run(arguments.subject)) {
    const fs::path file = trace_there(there->first, there->second, arguments);
    if (!arguments.json)
      println("{}: open it in ui.perfetto.dev or chrome://tracing\n", file.string());
    return summarize(file, arguments.json);
  }
  const Place place = place_of(arguments);
  fs::path file = trace_run(place.folder, arguments.wish);
  if (!arguments.out.empty() || !place.machine.empty()) {
    const fs::path out = trace_file(arguments);
    write_file_atomically(out, read_file(file));
    file = out;
  }
  if (!arguments.json)
    println("{}: open it in ui.perfetto.dev or chrome://tracing\n", file.string());
  summarize(file, arguments.json);
}

}  // namespace

void add_trace(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "trace", "Record a timeline of the next steps of a running training, on all workers");
  command->add_option("RUN", arguments->subject,
                      "Run folder (default: the newest run in progress below --folder), on any "
                      "machine of the run; HOST:FOLDER, through ssh; or a saved trace");
  command->add_option("--steps", arguments->wish.steps, "Number of steps to record")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, kMostTracedSteps));
  command
      ->add_option(
          "--out", arguments->out,
          "Also write the trace to this file (always: RUN/trace.json, or trace.json here if "
          "another machine has the run)")
      ->type_name("FILE");
  command->add_option("--folder", arguments->folder, "Folder that contains the runs")
      ->capture_default_str();
  command
      ->add_option("--timeout", arguments->wish.timeout,
                   "Seconds to wait for an answer, and for each further step")
      ->capture_default_str()
      ->check(at_least(1));
  command->add_flag("--json", arguments->json, "Print the summary as JSON, for scripts");
  command->footer(
      "All workers on all machines record the same steps on one clock. The run continues with the\n"
      "same bits. The summary shows the time spent computing (by op), waiting for data, waiting "
      "for\n"
      "workers, and on the wire; the workers that others waited for; and the possible speedup.\n"
      "Given a saved trace, the command prints its summary.\n\n"
      "Examples:\n"
      "  artel trace runs/mnist --steps 20\n"
      "  artel trace n01:runs/mnist                    # on another machine, through ssh\n"
      "  artel trace                                   # the newest run that is being trained\n"
      "  artel trace runs/mnist/trace.json             # summarise a saved trace\n"
      "  artel trace runs/mnist --json | jq .times_faster");
  command->callback([arguments] { trace(*arguments); });
}

}  // namespace artel::cli
