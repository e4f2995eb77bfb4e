#include <CLI/CLI.hpp>
#include <filesystem>
#include <thread>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/table.h"
#include "artel/transfer/small_model.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string kind, features, out;
  transfer::SmallModelOptions options;
};

void show_choices(const transfer::SmallModel& model) {
  if (model.tried.empty()) return;
  const bool values = model.made.classes == 0, linear = model.kind == "linear";
  observe::Table table({linear ? "l2" : "neighbours", values ? "mean square" : "accuracy", ""});
  for (const transfer::Tried& tried : model.tried)
    table.add({fmt::format("{:g}", tried.choice),
               fmt::format("{:.4f}", values ? tried.loss : tried.accuracy),
               tried.choice == model.choice ? "chosen" : ""});
  fmt::print("{} on samples that were held out:\n{}", linear ? "penalties" : "neighbours",
             table.text());
}

void fit(Arguments& arguments) {
  const transfer::Features features = transfer::Features::load(arguments.features);
  if (arguments.out.empty())
    arguments.out =
        (std::filesystem::path("models") /
         (std::filesystem::path(arguments.features).stem().string() + "-" + arguments.kind))
            .string();
  if (arguments.options.threads == 0)
    arguments.options.threads = std::max(1u, std::thread::hardware_concurrency());
  const transfer::SmallModel model =
      transfer::fit_small(arguments.kind, features, arguments.options);
  show_choices(model);
  const int threads = arguments.options.threads;
  observe::Table table({"part", "samples", features.classes > 0 ? "accuracy" : "mean square",
                        features.classes > 0 ? "loss" : ""});
  const auto add = [&](const char* name, const transfer::FeaturePart& part) {
    if (part.size() == 0 || part.targets.elements() == 0) return;
    const transfer::SmallScore score = transfer::judge(model, part, threads);
    if (features.classes > 0)
      table.add({name, format_count(score.samples), fmt::format("{:.4f}", score.accuracy),
                 fmt::format("{:.4f}", score.loss)});
    else
      table.add({name, format_count(score.samples), fmt::format("{:.6g}", score.loss), ""});
  };
  add("training", features.train);
  add("test", features.test);
  fmt::print("{}", table.text());
  model.save(arguments.out);
  println("saved to {}; to use it: artel predict {} FILE", arguments.out,
          shell_word(arguments.out));
}

}  // namespace

void add_fit(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("fit", "Fit a small model on features: linear, knn, or centroid");
  command
      ->add_option("MODEL", arguments->kind,
                   "linear (logistic or ridge regression), knn (nearest neighbours) or centroid "
                   "(nearest mean of a class)")
      ->required();
  command->add_option("FEATURES", arguments->features, "File of `artel features` (NPZ)")
      ->required();
  command
      ->add_option("-o,--out", arguments->out,
                   "Folder for the model (default: models/FEATURES-MODEL)")
      ->type_name("DIR");
  command
      ->add_option("--l2", arguments->options.l2,
                   "linear: candidate penalties for cross-validation (default: 1e-6 to 1)")
      ->type_name("X");
  command
      ->add_option("--neighbours", arguments->options.neighbours,
                   "knn: candidate numbers of neighbours (default: 1 3 5 9 15 25)")
      ->type_name("K")
      ->check(at_least(1));
  command->add_option("--folds", arguments->options.folds, "linear: folds of the cross-validation")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
  command->add_option("--seed", arguments->options.seed, "Seed of the cross-validation");
  command->add_option("--threads", arguments->options.threads, "Cores to use (default: all)")
      ->type_name("N");
  arguments->options.threads = 0;
  command->footer(
      "Features are standardised by the training samples. `artel predict` applies the model folder "
      "to\n"
      "pictures and texts, which pass through the base first, and to features.\n\n"
      "Examples:\n"
      "  artel fit linear features.npz\n"
      "  artel fit knn features.npz --neighbours 5 -o models/flowers\n"
      "  artel predict models/features-linear photo.jpg");
  command->callback([arguments] { fit(*arguments); });
}

}  // namespace artel::cli
