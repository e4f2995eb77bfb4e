#include <CLI/CLI.hpp>

#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/run/export.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string run, out;
  bool csv = false, json = false, html = false;
};

void export_run(const Arguments& arguments) {
  const std::string text = arguments.csv    ? export_csv(arguments.run)
                           : arguments.json ? export_json(arguments.run)
                                            : export_html(arguments.run);
  if (arguments.out.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return;
  }
  write_file_atomically(arguments.out, text);
  println("{} is in {}", arguments.run, arguments.out);
}

}  // namespace

void add_export(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("export", "Write a run as one file: a table, JSON or a report");
  command->add_option("RUN", arguments->run, "Folder of the run")->required();
  CLI::Option_group* format = command->add_option_group("format");
  format->add_flag("--csv", arguments->csv, "Metrics as a table, a line for each step");
  format->add_flag("--json", arguments->json, "Result, configuration, metrics and events");
  format->add_flag("--html", arguments->html, "A page with its pictures, to send to somebody");
  format->require_option(1);
  command->add_option("-o,--out", arguments->out, "File to write (default: standard output)")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  artel export runs/mnist --csv -o mnist.csv\n"
      "  artel export runs/mnist --json | jq .summary\n"
      "  artel export runs/mnist --html -o mnist.html");
  command->callback([arguments] { export_run(*arguments); });
}

}  // namespace artel::cli
