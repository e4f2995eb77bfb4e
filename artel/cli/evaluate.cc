#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/run/saved_run.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string source, config;
  std::vector<std::string> overrides;
  bool json = false;
};

void evaluate(const Arguments& arguments) {
  const SavedRun run = open_run(arguments.source, arguments.config, arguments.overrides);
  const Evaluation result = run.evaluate();
  const bool has_classes = run.layout.classes > 0;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"loss", result.loss}, {"samples", result.samples}};
    if (has_classes) {
      json["accuracy"] = result.accuracy;
      json["correct"] = result.correct;
    }
    println("{}", json.dump());
  } else if (has_classes) {
    println("accuracy {:.4f}  correct {} of {}  loss {:.4f}", result.accuracy,
            format_count(result.correct), format_count(result.labels), result.loss);
  } else {
    println("loss {:.4f} over {} samples", result.loss, format_count(result.samples));
  }
}

}  // namespace

void add_evaluate(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("evaluate", "Loss and accuracy of a trained network on test data");
  command->add_option("SOURCE", arguments->source, "Run, checkpoint or weight file")->required();
  command
      ->add_option("--config", arguments->config,
                   "Configuration that tells model and data, for a weight file")
      ->type_name("FILE");
  add_overrides(command, arguments->overrides);
  command->add_flag("--json", arguments->json, "One JSON object");
  command->footer(
      "Examples:\n"
      "  artel evaluate runs/mnist\n"
      "  artel evaluate runs/mnist/checkpoints/step-000000468\n"
      "  artel evaluate resnet20.th --config examples/cifar_resnet20.toml");
  command->callback([arguments] { evaluate(*arguments); });
}

}  // namespace artel::cli
