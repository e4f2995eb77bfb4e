#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iostream>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/time.h"
#include "artel/cli/commands.h"
#include "artel/observe/metrics.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"
#include "artel/observe/terminal.h"
#include "artel/run/folder/overview.h"
#include "artel/run/folder/run_folder.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string folder = "runs";
  std::vector<std::string> status;
  bool json = false;
  std::vector<std::string> runs;  // of compare and clean
  std::string picture;
  bool yes = false;
};

std::string number_or_blank(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "";
}

nlohmann::ordered_json json_of(const RunOverview& run) {
  nlohmann::ordered_json line = {{"run", run.path.string()},
                                 {"status", to_string(run.status)},
                                 {"step", run.step},
                                 {"seconds", run.seconds}};
  if (run.loss) line["loss"] = *run.loss;
  if (run.metric) line[run.metric_name] = *run.metric;
  line["bytes"] = run.bytes;
  line["remark"] = run.remark;
  return line;
}

// A run is given by its path, or by its name in the folder of runs.
fs::path run_called(const std::string& name, const std::string& folder) {
  const fs::path inside = fs::path(folder) / name;
  const bool given = RunFolder(name).used() || (fs::exists(name) && !fs::exists(inside));
  return given ? fs::path(name) : inside;
}

std::vector<RunOverview> chosen(const Arguments& arguments) {
  std::vector<RunStatus> wanted;
  for (const std::string& word : arguments.status) wanted.push_back(run_status(word));
  std::vector<RunOverview> runs;
  if (arguments.runs.empty()) {
    runs = overviews(arguments.folder);
  } else {
    for (const std::string& name : arguments.runs)
      runs.push_back(overview(run_called(name, arguments.folder)));
  }
  std::erase_if(runs, [&](const RunOverview& run) {
    return !wanted.empty() && std::ranges::find(wanted, run.status) == wanted.end();
  });
  return runs;
}

struct ListColumn {
  const char* header;
  int importance;  // columns of less are left out first
  std::string (*cell)(const RunOverview&);
};

const ListColumn kListColumns[] = {
    {"run", 9, [](const RunOverview& run) { return run.path.string(); }},
    {"status", 9, [](const RunOverview& run) { return std::string(to_string(run.status)); }},
    {"step", 2, [](const RunOverview& run) { return format_count(run.step); }},
    {"loss", 3, [](const RunOverview& run) { return number_or_blank(run.loss, "{:.4f}"); }},
    {"result", 4,
     [](const RunOverview& run) {
       return run.metric ? fmt::format("{} {:.4f}", run.metric_name, *run.metric) : "";
     }},
    {"time", 1, [](const RunOverview& run) { return format_duration(run.seconds); }},
    {"size", 0,
     [](const RunOverview& run) { return format_bytes(static_cast<double>(run.bytes)); }},
};

// Shows the columns of at least this importance, and remarks of limited length.
std::string run_table(const std::vector<RunOverview>& runs, int importance, size_t remark) {
  std::vector<const ListColumn*> shown;
  for (const ListColumn& column : kListColumns)
    if (column.importance >= importance) shown.push_back(&column);
  std::vector<std::string> headers;
  for (const ListColumn* column : shown) headers.emplace_back(column->header);
  if (remark > 0) headers.emplace_back("remark");
  observe::Table table(headers);
  for (const RunOverview& run : runs) {
    std::vector<std::string> cells;
    for (const ListColumn* column : shown) cells.push_back(column->cell(run));
    if (remark > 0)
      cells.push_back(run.remark.size() > remark ? run.remark.substr(0, remark - 3) + "..."
                                                 : run.remark);
    table.add(std::move(cells));
  }
  return table.text();
}

// Fits the table into `width` columns: cuts remarks, then omits less important columns.
std::string listing(const std::vector<RunOverview>& runs, size_t width) {
  constexpr size_t kShort = 20;
  size_t longest = 0;
  for (const RunOverview& run : runs) longest = std::max(longest, run.remark.size());
  const size_t remark = longest == 0 ? 0 : std::clamp<size_t>(longest, 6, kShort) + 2;
  for (int importance = 0;; ++importance) {
    const std::string text = run_table(runs, importance, 0);
    const size_t begin = text.find('\n') + 1, used = text.find('\n', begin) - begin;  // the rules
    const bool fits = width >= used + remark;
    if (fits || importance > 4)
      return run_table(runs, importance, fits && remark > 0 ? width - used - 2 : 0);
  }
}

void list(const Arguments& arguments) {
  const std::vector<RunOverview> runs = chosen(arguments);
  if (arguments.json) {
    for (const RunOverview& run : runs)
      println("{}", json_of(run).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  if (runs.empty()) {
    println("no runs in {}", arguments.folder);
    return;
  }
  const bool terminal = observe::is_terminal(stdout);
  fmt::print("{}", listing(runs, terminal ? static_cast<size_t>(observe::terminal_width(stdout))
                                          : SIZE_MAX));
}

// One panel for each number that all runs have, with a line for each run.
void draw(const std::vector<fs::path>& runs, const std::string& picture) {
  std::map<std::string, std::vector<observe::Series>> by_name;
  for (const fs::path& run : runs)
    for (const auto& [name, points] : observe::read_metrics(run))
      by_name[name].push_back(observe::thinned(
          {.name = run.filename().string(), .points = {points.begin(), points.end()}}));
  std::vector<observe::Plot> panels;
  for (const char* name :
       {"train/loss", "test/loss", "test/accuracy", "validation/loss", "validation/accuracy"}) {
    const auto found = by_name.find(name);
    if (found == by_name.end() || found->second.size() < runs.size()) continue;
    panels.push_back({.title = name, .x_label = "step", .series = std::move(found->second)});
  }
  require(!panels.empty(), ErrorKind::not_found,
          "[{}] nothing to draw: the runs have no curve in common", picture);
  write_file_atomically(picture, observe::to_svg(panels));
  println("curves are in {}", picture);
}

void compare_runs(const Arguments& arguments) {
  std::vector<fs::path> paths;
  std::vector<std::string> headers = {""};
  std::vector<RunOverview> runs = chosen(arguments);
  for (const RunOverview& run : runs) {
    paths.push_back(run.path);
    headers.push_back(run.path.string());
  }
  observe::Table table(headers);
  const auto row = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> cells = {name};
    for (const RunOverview& run : runs) cells.push_back(cell(run));
    if (std::any_of(cells.begin() + 1, cells.end(), [](const auto& c) { return !c.empty(); }))
      table.add(std::move(cells));
  };
  row("status", [](const RunOverview& run) { return std::string(to_string(run.status)); });
  row("step", [](const RunOverview& run) { return format_count(run.step); });
  row("loss", [](const RunOverview& run) { return number_or_blank(run.loss, "{:.4f}"); });
  for (const char* name : {"test accuracy", "validation accuracy", "test loss", "validation loss"})
    row(name, [name](const RunOverview& run) {
      return run.metric_name == name ? number_or_blank(run.metric, "{:.4f}") : "";
    });
  row("time", [](const RunOverview& run) { return format_duration(run.seconds); });
  const std::vector<ChangedKey> keys = changed_keys(paths);
  for (const ChangedKey& key : keys) {
    std::vector<std::string> cells = {key.name};
    for (const std::string& value : key.values) cells.push_back(value.empty() ? "-" : value);
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
  if (keys.empty()) println("the configurations are the same");
  if (!arguments.picture.empty()) draw(paths, arguments.picture);
}

bool agreed(const std::string& question) {
  require(
      ::isatty(STDIN_FILENO) != 0, ErrorKind::invalid_argument,
      "runs clean: standard input is not a terminal; add --yes to remove them without a question");
  fmt::print("{} [y/N] ", question);
  std::fflush(stdout);
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

void clean(Arguments arguments) {
  if (arguments.runs.empty() && arguments.status.empty()) arguments.status = {"failed", "dead"};
  const std::vector<RunOverview> runs = chosen(arguments);
  if (runs.empty()) {
    println("nothing to remove in {}", arguments.folder);
    return;
  }
  double bytes = 0;
  for (const RunOverview& run : runs) {
    require(run.status != RunStatus::running, ErrorKind::invalid_argument,
            "[{}] is being trained by {}; stop it first", run.path.string(), run.remark);
    bytes += static_cast<double>(run.bytes);
    println("{}  {} at step {}, {}", run.path.string(), to_string(run.status),
            format_count(run.step), format_bytes(static_cast<double>(run.bytes)));
  }
  if (!arguments.yes &&
      !agreed(fmt::format("remove {} and free {}?",
                          counted(static_cast<int64_t>(runs.size()), "run"), format_bytes(bytes))))
    return;
  for (const RunOverview& run : runs) fs::remove_all(run.path);
  println("removed {}", counted(static_cast<int64_t>(runs.size()), "run"));
}

void add_status(CLI::App* command, Arguments& arguments) {
  command
      ->add_option("--status", arguments.status,
                   "Only runs with these statuses: running, finished, stopped, ...")
      ->delimiter(',');
}

}  // namespace

void add_runs(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("runs", "List, compare, and remove runs");
  command->add_option("--in", arguments->folder, "Folder with the runs")->capture_default_str();
  add_status(command, *arguments);
  command->add_flag("--json", arguments->json, "Print one JSON object per line");
  command->footer(
      "A run is running, finished, stopped (it can be resumed), failed (the error is shown), or\n"
      "dead (its process disappeared without a message, as after kill -9).\n\n"
      "Examples:\n"
      "  artel runs\n"
      "  artel runs --in experiments --status failed,dead\n"
      "  artel runs compare mnist mnist-2 -o curves.svg\n"
      "  artel runs clean");
  command->callback([command, arguments] {
    if (command->get_subcommands().empty()) list(*arguments);
  });

  CLI::App* comparing =
      command->add_subcommand("compare", "Compare results and differing settings");
  comparing->add_option("RUN", arguments->runs, "Run folders")->required()->expected(2, -1);
  comparing->add_option("-o,--out", arguments->picture, "Also draw the curves to this SVG file");
  comparing->add_option("--in", arguments->folder, "Folder that contains the runs")
      ->capture_default_str();
  comparing->callback([arguments] { compare_runs(*arguments); });

  CLI::App* cleaning = command->add_subcommand("clean", "Remove runs, after asking");
  cleaning->add_option("RUN", arguments->runs, "Run folders (default: all runs with --status)");
  cleaning->add_option("--in", arguments->folder, "Where runs are")->capture_default_str();
  add_status(cleaning, *arguments);
  cleaning->add_flag("--yes", arguments->yes, "Do not ask for confirmation");
  cleaning->footer("Without RUN and --status, removes failed and dead runs.");
  cleaning->callback([arguments] { clean(*arguments); });
}

}  // namespace artel::cli
