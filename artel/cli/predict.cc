#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/shared_predictions.h"
#include "artel/cli/workers.h"
#include "artel/cluster/launcher.h"
#include "artel/data/images/image_folder.h"
#include "artel/observe/progress.h"
#include "artel/observe/terminal.h"
#include "artel/run/samples/samples.h"
#include "artel/transfer/small_predictor.h"

namespace artel::cli {
namespace {

struct Arguments {
  RunSource source;
  std::vector<std::string> files, texts, seconds;
  std::string out;
  int workers = 1;
  bool json = false;
  PredictionOptions options;
};

PredictionFormat format_of(const Arguments& arguments, const SavedRun& run) {
  if (arguments.json || arguments.out.ends_with(".json") || arguments.out.ends_with(".jsonl"))
    return PredictionFormat::json;
  // Predictions for a table are written as a table.
  return arguments.out.ends_with(".csv") || (run.layout.table && arguments.texts.empty())
             ? PredictionFormat::csv
             : PredictionFormat::text;
}

int64_t classes_shown(const PredictionOptions& options) {
  if (options.top > 0) return options.top;
  return options.format == PredictionFormat::csv ? 1 : 3;
}

// With a model of `artel fit`.
void predict_small(Arguments& arguments) {
  require(arguments.workers == 1, ErrorKind::invalid_argument,
          "-n: got {} workers for a model of `artel fit`, expected one", arguments.workers);
  transfer::SmallPredictor predictor(arguments.source.path,
                                     std::max(1u, std::thread::hardware_concurrency()));
  PredictionOptions options = arguments.options;
  const bool json =
      arguments.json || arguments.out.ends_with(".json") || arguments.out.ends_with(".jsonl");
  options.format = json                              ? PredictionFormat::json
                   : arguments.out.ends_with(".csv") ? PredictionFormat::csv
                                                     : PredictionFormat::text;
  options.top = classes_shown(options);
  PredictionLines lines(predictor.layout(), options);
  PredictionOutput output(arguments.out);
  const auto write = [&](const std::string& name, bool own, const Tensor& scores) {
    SampleBatch batch;
    if (own) batch.names = {name};
    output.write(lines.of(name, batch, scores));
  };
  for (const std::string& each : arguments.files) {
    if (!std::filesystem::is_directory(each)) {
      const Tensor scores = predictor.scores_of(each);
      write(each, scores.shape()[0] == 1, scores);
      continue;
    }
    const auto pictures = data::pictures_in(each);
    require(!pictures.empty(), ErrorKind::not_found,
            "[{}] holds no pictures, expected .jpg or .png", each);
    for (const auto& picture : pictures) try {
        write(picture.string(), true, predictor.scores_of(picture));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::corrupt) throw;
        log(LogLevel::warning, "{}; skipped", error.what());
      }
  }
  for (size_t i = 0; i < arguments.texts.size(); ++i) {
    std::optional<std::string> second;
    if (!arguments.seconds.empty()) second = arguments.seconds[i];
    write(arguments.texts[i], true, predictor.scores_of_text(arguments.texts[i], second));
  }
  output.finish();
}

void predict(Arguments& arguments, Cluster& cluster) {
  // The cores are shared by all workers of this machine.
  if (cluster.size() > 1)
    arguments.source.overrides.push_back(fmt::format("cluster.threads={}", cluster.cores()));
  const SavedRun run = open_run(arguments.source, {&cluster, [](Cluster*) {}});
  PredictionOptions options = arguments.options;
  options.format = format_of(arguments, run);
  options.header = cluster.rank() == 0;
  options.top = classes_shown(options);
  PredictionLines lines(run.layout, options);
  observe::Progress progress;
  // If each worker has only some of the layers, all process all samples, and worker 0 writes.
  Cluster alone;
  const bool divided = run.trainer->divided_for_predictions();
  const auto texts = [&](const std::function<void(std::string_view)>& write) {
    for (size_t i = 0; i < arguments.texts.size(); ++i) {
      const std::string& text = arguments.texts[i];
      std::optional<std::string> second;
      if (!arguments.seconds.empty()) second = arguments.seconds[i];
      const SampleBatch batch{.inputs = text_sample(text, second, run.layout),
                              .names = {second ? text + " | " + *second : text}};
      write(lines.of("", batch, run.trainer->predict(batch.inputs, lines.output())));
    }
  };
  if (cluster.rank() > 0) {
    share_predictions(
        run, arguments.files, lines, divided ? alone : cluster, [](std::string_view) {},
        [](const std::string&, double) {});
    if (divided) texts([](std::string_view) {});
    return;
  }
  PredictionOutput output(arguments.out);
  // Lines that people read as they come need no progress.
  const bool shown = !arguments.out.empty() || !observe::is_terminal(stdout);
  share_predictions(
      run, arguments.files, lines, divided ? alone : cluster,
      [&](std::string_view text) { output.write(text); },
      [&](const std::string& file, double share) {
        if (shown) progress.share("predicting for " + file, share);
      });
  texts([&](std::string_view text) { output.write(text); });
  progress.clear();
  output.finish();
  if (const std::string used = describe_checkpoint(arguments.source); !used.empty())
    log(LogLevel::info, "{}", used);
}

void predict_here_or_with_others(Arguments& arguments) {
  require(!arguments.files.empty() || !arguments.texts.empty(), ErrorKind::invalid_argument,
          "predict: got no input, expected files or --text");
  require(arguments.seconds.empty() || arguments.seconds.size() == arguments.texts.size(),
          ErrorKind::invalid_argument, "--second: got {}, expected as many as --text ({})",
          arguments.seconds.size(), arguments.texts.size());
  if (transfer::is_small_model(arguments.source.path)) return predict_small(arguments);
  if (arguments.workers > 1 && !launched_group()) {
    const int code = launch_here({.workers = arguments.workers});
    if (code != 0) throw CLI::RuntimeError(code);
    return;
  }
  Cluster cluster(0, nullptr);
  cluster.attempt([&] { predict(arguments, cluster); });
}

}  // namespace

void add_predict(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("predict", "Predict with a trained network");
  add_source(command, arguments->source);
  command->add_option(
      "FILE", arguments->files,
      "Samples: a table (CSV), libsvm, texts (one per line, - for standard input, or CSV), "
      "pictures (JPEG, PNG) or folders of pictures, or arrays (NPY, NPZ, idx)");
  command
      ->add_option("--text", arguments->texts,
                   "One or more texts, for networks that classify texts")
      ->type_name("TEXT");
  command->add_option("--second", arguments->seconds, "For pairs: the second text for each --text")
      ->type_name("TEXT");
  command
      ->add_option("-o,--out", arguments->out,
                   "Write the predictions to this file: CSV, or JSON lines for .jsonl")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object per line");
  command
      ->add_option("-n,--workers", arguments->workers,
                   "Number of processes that share the samples; each reads whole tables (default: "
                   "1, which uses all cores). With --set cluster.pipeline=N they share the layers "
                   "of a network too large for one process")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--top", arguments->options.top,
                   "Number of classes to show per sample (default: 3; in CSV 1)")
      ->type_name("K")
      ->check(at_least(1));
  command->add_flag("--raw", arguments->options.raw,
                    "Print the unprocessed outputs of the network");
  command
      ->add_option("--output", arguments->options.output,
                   "Print this output, unprocessed, of a network with several outputs (layers "
                   "\"output NAME\")")
      ->type_name("NAME");
  command->footer(
      "A table needs the columns of the training data, in any order. Predictions are in the order "
      "of\n"
      "its rows, and values have the unit of the target. The file after --out appears when it is\n"
      "complete.\n\n"
      "Examples:\n"
      "  artel predict runs/fashion_mnist shoe.png\n"
      "  artel predict runs/fashion_mnist images.npy --top 1\n"
      "  artel predict runs/pairs pairs.npz\n"
      "  artel predict models/flowers photo.jpg        # a model of `artel fit`\n"
      "  artel predict runs/houses new.csv -o prices.csv\n"
      "  artel predict runs/animals photographs/ --json -o found.jsonl\n"
      "  artel predict runs/large photo.jpg -n 2 --set cluster.pipeline=2\n"
      "  mpirun -n 4 artel predict runs/animals photographs/ -o found.csv\n"
      "  artel predict runs/bert_classify --text \"Claim your free prize now\" \"See you at six\"");
  command->callback([arguments] { predict_here_or_with_others(*arguments); });
}

}  // namespace artel::cli
