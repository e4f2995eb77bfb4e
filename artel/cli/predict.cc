#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/data/image_folder.h"
#include "artel/run/predictions.h"
#include "artel/run/samples.h"
#include "artel/transfer/small_predictor.h"

namespace artel::cli {
namespace {

struct Arguments {
  RunSource source;
  std::vector<std::string> files, texts, seconds;
  std::string out;
  bool json = false;
  PredictionOptions options;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_output(const std::string& path) {
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  require(file != nullptr, ErrorKind::io, "[{}] cannot open: {}", path, std::strerror(errno));
  return file;
}

// The next batch is read while the network computes the last one.
void predict_file(const SavedRun& run, const std::string& file, PredictionWriter& writer) {
  const std::unique_ptr<SampleReader> reader = open_samples(file, run);
  const auto read = [&] { return std::async(std::launch::async, [&] { return reader->next(); }); };
  auto coming = read();
  while (const std::optional<SampleBatch> batch = coming.get()) {
    coming = read();
    writer.write(file, *batch, run.trainer->predict(batch->inputs));
  }
}

PredictionFormat format_of(const Arguments& arguments, const SavedRun& run) {
  if (arguments.json || arguments.out.ends_with(".json") || arguments.out.ends_with(".jsonl"))
    return PredictionFormat::json;
  // What comes from a table goes to one.
  return arguments.out.ends_with(".csv") || (run.layout.table && arguments.texts.empty())
             ? PredictionFormat::csv
             : PredictionFormat::text;
}

// With a model of `artel fit`.
void predict_small(Arguments& arguments) {
  transfer::SmallPredictor predictor(arguments.source.path,
                                     std::max(1u, std::thread::hardware_concurrency()));
  const File file = arguments.out.empty() ? File(nullptr, std::fclose) : open_output(arguments.out);
  const bool json =
      arguments.json || arguments.out.ends_with(".json") || arguments.out.ends_with(".jsonl");
  arguments.options.format = json                              ? PredictionFormat::json
                             : arguments.out.ends_with(".csv") ? PredictionFormat::csv
                                                               : PredictionFormat::text;
  if (arguments.options.top == 0)
    arguments.options.top = arguments.options.format == PredictionFormat::csv ? 1 : 3;
  PredictionWriter writer(predictor.layout(), arguments.options, file ? file.get() : stdout);
  for (const std::string& each : arguments.files) {
    if (!std::filesystem::is_directory(each)) {
      writer.write(each, {}, predictor.scores_of(each));
      continue;
    }
    const auto pictures = data::pictures_in(each);
    require(!pictures.empty(), ErrorKind::not_found,
            "[{}] holds no pictures, expected .jpg or .png", each);
    for (const auto& picture : pictures)
      writer.write(picture.string(), {}, predictor.scores_of(picture));
  }
  for (size_t i = 0; i < arguments.texts.size(); ++i) {
    std::optional<std::string> second;
    if (!arguments.seconds.empty()) second = arguments.seconds[i];
    writer.write(arguments.texts[i], {}, predictor.scores_of_text(arguments.texts[i], second));
  }
  writer.flush();
}

void predict(Arguments& arguments) {
  require(!arguments.files.empty() || !arguments.texts.empty(), ErrorKind::invalid_argument,
          "predict: got no input, expected files or --text");
  require(arguments.seconds.empty() || arguments.seconds.size() == arguments.texts.size(),
          ErrorKind::invalid_argument, "--second: got {}, expected as many as --text ({})",
          arguments.seconds.size(), arguments.texts.size());
  if (transfer::is_small_model(arguments.source.path)) return predict_small(arguments);
  const SavedRun run = open_run(arguments.source);
  const File file = arguments.out.empty() ? File(nullptr, std::fclose) : open_output(arguments.out);
  arguments.options.format = format_of(arguments, run);
  if (arguments.options.top == 0)
    arguments.options.top = arguments.options.format == PredictionFormat::csv ? 1 : 3;
  PredictionWriter writer(run.layout, arguments.options, file ? file.get() : stdout);
  for (const std::string& each : arguments.files) predict_file(run, each, writer);
  for (size_t i = 0; i < arguments.texts.size(); ++i) {
    const std::string& text = arguments.texts[i];
    std::optional<std::string> second;
    if (!arguments.seconds.empty()) second = arguments.seconds[i];
    SampleBatch batch{.inputs = text_sample(text, second, run.layout),
                      .names = {second ? text + " | " + *second : text}};
    writer.write("", batch, run.trainer->predict(batch.inputs));
  }
  writer.flush();
}

}  // namespace

void add_predict(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("predict", "Predict with a trained network");
  add_source(command, arguments->source);
  command->add_option("FILE", arguments->files,
                      "Files of the kind that the network was trained on: tables (CSV), libsvm, "
                      "texts (one on each line; - is standard input), pictures (JPEG, PNG) or "
                      "folders of them; or arrays (NPY)");
  command
      ->add_option("--text", arguments->texts,
                   "A text, for networks that classify texts; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command->add_option("--second", arguments->seconds, "For pairs: the second text for each --text")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      ->add_option("-o,--out", arguments->out,
                   "Write the predictions to this file: CSV, or JSON lines if it is called .jsonl")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object a line");
  command
      ->add_option("--top", arguments->options.top,
                   "Classes to show for each sample (default: 3; in CSV 1)")
      ->type_name("K")
      ->check(at_least(1));
  command->add_flag("--raw", arguments->options.raw, "The network's outputs as they are");
  command->footer(
      "A table needs the columns that the network was trained with, in any order; the predictions "
      "are\nin the order of its rows, and values have the unit of the target.\n\n"
      "Examples:\n"
      "  artel predict runs/fashion_mnist shoe.png\n"
      "  artel predict runs/fashion_mnist images.npy --top 1\n"
      "  artel predict runs/pairs pairs.npz\n"
      "  artel predict models/flowers photo.jpg        # a model of `artel fit`\n"
      "  artel predict runs/houses new.csv -o prices.csv\n"
      "  artel predict runs/bert_classify --text \"Claim your free prize now\"");
  command->callback([arguments] { predict(*arguments); });
}

}  // namespace artel::cli
