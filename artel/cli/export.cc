#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/predict/batches.h"
#include "artel/predict/onnx_model.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/report/export.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string run, out, onnx;
  int64_t batch = 1;
  bool csv = false, json = false, html = false;
};

void export_network(const Arguments& arguments) {
  require(arguments.out.empty(), ErrorKind::invalid_argument,
          "--out: got {}, but --onnx {} names the file already; leave out one of them",
          arguments.out, arguments.onnx);
  const SavedRun run = open_run({.path = arguments.run});
  const std::string file =
      onnx_model(make_model(run.config.model, run.layout), run.sample(),
                 weights_for(run.config.model, arguments.run), arguments.batch);
  write_file_atomically(arguments.onnx, file);
  println("the network of {} is in {}: input x {}, output prediction", arguments.run,
          arguments.onnx, to_string(batch_of(run.sample(), arguments.batch)));
}

void export_run(const Arguments& arguments) {
  if (!arguments.onnx.empty()) return export_network(arguments);
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
  CLI::App* command = program.add_subcommand(
      "export", "Write a run as one file: a table, JSON, a report or an ONNX model");
  command->add_option("RUN", arguments->run, "Folder of the run")->required();
  CLI::Option_group* format = command->add_option_group("format");
  format->add_flag("--csv", arguments->csv, "Metrics as a table, one line per step");
  format->add_flag("--json", arguments->json, "Result, configuration, metrics and events");
  format->add_flag("--html", arguments->html, "A self-contained page with its pictures");
  format
      ->add_option("--onnx", arguments->onnx,
                   "Write the trained network as an ONNX model to this file")
      ->type_name("FILE");
  format->require_option(1);
  command->add_option("--batch", arguments->batch, "Batch size of the ONNX model")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("-o,--out", arguments->out, "File to write (default: standard output)")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  artel export runs/mnist --csv -o mnist.csv\n"
      "  artel export runs/mnist --json | jq .summary\n"
      "  artel export runs/mnist --html -o mnist.html\n"
      "  artel export runs/mnist --onnx mnist.onnx --batch 32");
  command->callback([arguments] { export_run(*arguments); });
}

}  // namespace artel::cli
