#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/launched.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/run/folder/saved_run.h"
#include "artel/run/report/class_report.h"
#include "artel/run/report/mistakes.h"

namespace artel::cli {
namespace {

constexpr int64_t kMistakes = 24;

struct Arguments {
  RunSource source;
  std::string part = "test";
  bool json = false;
  bool confusion = false;
  std::string svg;
  std::string mistakes;
  int workers = 1;
};

// Draws the mistakes to a file and returns their descriptions.
nlohmann::ordered_json draw(const std::vector<Mistake>& mistakes, const SavedRun& run, Part part,
                            const std::string& file) {
  if (mistakes.empty()) return nlohmann::ordered_json::array();
  const data::DatasetPtr set = open_data(run.config, run.layout.table).at(part);
  const TestedSet tested = {.set = *set,
                            .augment = run.augment,
                            .part = std::string(to_string(part)),
                            .size = set->size()};
  write_file_atomically(file, data::encode_png(draw_mistakes(mistakes, tested).picture));
  return to_json(mistakes, tested);
}

std::string table_of(const nlohmann::ordered_json& mistakes) {
  observe::Table table({"mistake", "label", "answer", "probability"});
  for (const auto& mistake : mistakes)
    table.add({fmt::format("sample {}", mistake["sample"].get<int64_t>()),
               mistake["label"].get<std::string>(), mistake["answer"].get<std::string>(),
               fmt::format("{:.4f}", mistake["probability"].get<double>())});
  return table.text();
}

void evaluate(Arguments& arguments, const std::shared_ptr<Cluster>& cluster) {
  const Part part = arguments.part == "train"        ? Part::train
                    : arguments.part == "validation" ? Part::validation
                                                     : Part::test;
  std::vector<std::string>& more = arguments.source.more_metrics;
  more.emplace_back("per class");
  if (arguments.confusion || !arguments.svg.empty()) more.emplace_back("confusion matrix");
  const SavedRun run = open_run(arguments.source, cluster);
  require(arguments.mistakes.empty() || are_pictures(run.layout), ErrorKind::invalid_argument,
          "--mistakes: got a network for samples {}, expected pictures with classes; try without "
          "it",
          to_string(run.layout.input));
  observe::Progress progress;
  const Evaluation result = run.evaluate(
      part,
      [&](int64_t done, int64_t samples) {
        if (cluster->rank() == 0) progress.work("evaluating", done, samples);
      },
      arguments.mistakes.empty() ? 0 : kMistakes);
  if (cluster->rank() > 0) return;
  progress.clear();
  if (const std::string used = describe_checkpoint(arguments.source); !used.empty())
    log(LogLevel::info, "{}", used);
  const nlohmann::ordered_json mistakes = draw(result.mistakes, run, part, arguments.mistakes);
  const std::vector<std::string> classes = names_of_classes(run.layout);
  if (!arguments.svg.empty()) {
    const std::string svg = confusion_svg(result.metrics, classes);
    require(!svg.empty(), ErrorKind::invalid_argument,
            "--svg: got a network without 2 to 100 classes to confuse; try without it");
    write_file_atomically(arguments.svg, svg);
  }
  if (arguments.json) {
    nlohmann::ordered_json json = {
        {"on", arguments.part}, {"loss", result.loss}, {"samples", result.samples}};
    for (const MetricValue& metric : result.metrics) {
      json[metric.name] = to_json(metric, classes);
      if (metric.name == "accuracy") json["correct"] = result.correct;
    }
    if (!arguments.mistakes.empty()) json["mistakes"] = mistakes;
    println("{}", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  const bool counts = find_metric(result.metrics, "accuracy") != nullptr;
  std::string line =
      counts ? fmt::format("accuracy {:.4f}  correct {} of {}  loss {:.4f}", result.accuracy,
                           format_count(result.correct), format_count(result.labels), result.loss)
             : fmt::format("loss {:.4f} over {}", result.loss, counted(result.samples, "sample"));
  for (const MetricValue& metric : result.metrics)
    if (metric.single && metric.name != "accuracy")
      line += fmt::format("  {} {:.4f}", metric.name, metric.value);
  std::string details = text_of_details(result.metrics, classes);
  if (!mistakes.empty()) details += table_of(mistakes);
  println("{}: {}{}", arguments.part, line,
          details.empty() ? "" : "\n" + details.substr(0, details.size() - 1));
}

}  // namespace

void add_evaluate(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "evaluate", "Evaluate a trained network: loss and metrics on a part of its data");
  add_source(command, arguments->source);
  command->add_option("--on", arguments->part, "Part of the data: test, validation or train")
      ->type_name("PART")
      ->check(CLI::IsMember({"test", "validation", "train"}))
      ->capture_default_str();
  command->add_flag("--confusion", arguments->confusion,
                    "Also print the confusion matrix (labels by answers)");
  command->add_option("--svg", arguments->svg, "Draw the confusion matrix to this file")
      ->type_name("FILE");
  command
      ->add_option("--mistakes", arguments->mistakes,
                   "For pictures: draw the most certain mistakes to this PNG file")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->footer(
      "Examples:\n"
      "  artel evaluate runs/mnist\n"
      "  artel evaluate runs/mnist --best --on validation\n"
      "  artel evaluate runs/mnist --confusion --svg confusion.svg\n"
      "  artel evaluate runs/mnist -n 4                        # each sees some of the samples\n"
      "  artel evaluate runs/gpt -n 2 --set cluster.pipeline=2  # each has some of the layers\n"
      "  artel evaluate runs/mnist --mistakes mistakes.png\n"
      "  artel evaluate runs/mnist/checkpoints/step-000000468\n"
      "  artel evaluate resnet20.th --config examples/cifar_resnet20.toml");
  add_workers(command, arguments->workers);
  command->callback([arguments] {
    on_workers(arguments->workers,
               [&](const std::shared_ptr<Cluster>& cluster) { evaluate(*arguments, cluster); });
  });
}

}  // namespace artel::cli
