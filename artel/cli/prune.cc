#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/train_file.h"
#include "artel/cluster/launcher.h"
#include "artel/observe/table.h"
#include "artel/shrink/prune_run.h"
#include "artel/shrink/result_folder.h"

namespace artel::cli {
namespace {

struct Arguments {
  shrink::PruneRunOptions options;
  double channels = 0, weights = 0;  // per cent
  bool per_layer = false, no_evaluation = false;
  int64_t epochs = 0;
  int workers = 0;
  std::string out;
  std::vector<std::string> overrides;  // of the fine-tuning
};

void print_layers(const shrink::PrunedRun& run) {
  observe::Table table({"layer", "units", "left", "zeros", ""});
  for (const shrink::PrunedLayer& layer : run.layers)
    table.add({layer.name, layer.units_before > 0 ? format_count(layer.units_before) : "",
               layer.units_before > 0 ? format_count(layer.units_after) : "",
               layer.weights > 0
                   ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(layer.zeros) /
                                                 static_cast<double>(layer.weights))
                   : "",
               layer.kept_because.empty() ? "" : "kept: " + layer.kept_because});
  fmt::print("{}", table.text());
  println(
      "parameters: {} before, {} after; operations of a sample: {:.1f} M before, {:.1f} M after",
      format_count(run.parameters_before), format_count(run.parameters_after),
      run.operations_before / 1e6, run.operations_after / 1e6);
}

void print_quality(const shrink::PrunedRun& run) {
  if (run.before.samples == 0) return;
  println("before: {}\npruned: {}\nlost:   {:.3f} {}", to_string(run.before), to_string(run.after),
          shrink::lost(run.before, run.after), shrink::lost_unit(run.before));
}

void finetune(const Arguments& arguments) {
  TrainArguments training;
  training.file = shrink::finetuning_config(arguments.out);
  training.options.out = arguments.out;
  train(training);
}

// Called before any computation. The source may be a weight file only with fine-tuning, because
// that writes a new run itself.
void check_result(const Arguments& arguments) {
  if (arguments.epochs > 0)
    shrink::check_free(arguments.out);
  else
    shrink::check_result(arguments.options.source.path, arguments.out);
}

void prune(Arguments& arguments) {
  // Fine-tuning workers find the folder that the first process has prepared.
  if (launched_group()) return finetune(arguments);
  shrink::PruneRunOptions& options = arguments.options;
  options.units = arguments.channels / 100;
  options.weights = arguments.weights / 100;
  options.global = !arguments.per_layer;
  options.evaluate = !arguments.no_evaluation;
  require(arguments.epochs == 0 || !arguments.out.empty(), ErrorKind::invalid_argument,
          "--finetune: got no folder for the result, expected -o FOLDER");
  if (!arguments.out.empty()) check_result(arguments);
  const shrink::PrunedRun run = shrink::prune_run(options);
  print_layers(run);
  print_quality(run);
  if (arguments.out.empty()) return;
  if (arguments.epochs == 0) {
    shrink::save_pruned(run, options.source, arguments.out);
    println("{} is in {}", options.source.path, arguments.out);
    return;
  }
  if (arguments.workers > 0)
    arguments.overrides.push_back(fmt::format("cluster.workers={}", arguments.workers));
  shrink::prepare_finetuning(run, arguments.epochs, arguments.out, arguments.overrides);
  finetune(arguments);
  if (run.before.samples == 0) return;
  const shrink::Quality tuned =
      shrink::quality_of(open_run({.path = arguments.out}), arguments.out);
  println("fine-tuned: {}\nlost:       {:.3f} {}", to_string(tuned),
          shrink::lost(run.before, tuned), shrink::lost_unit(run.before));
}

// "50%" or "50".
CLI::Validator per_cent() {
  return CLI::Validator(
      [](std::string& text) {
        std::string number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
        double value = 0;
        if (!CLI::detail::lexical_cast(number, value) || value <= 0 || value >= 100)
          return fmt::format("got '{}', expected a share between 0 % and 100 % such as 50%", text);
        text = number;
        return std::string();
      },
      "");
}

}  // namespace

void add_prune(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  shrink::PruneRunOptions& options = arguments->options;
  CLI::App* command = program.add_subcommand(
      "prune", "Remove channels, units or weights of a trained network, and fine-tune it");
  add_source(command, options.source, arguments->overrides);
  command
      ->add_option("--channels", arguments->channels,
                   "Share of the channels and units of each layer to remove")
      ->type_name("SHARE")
      ->transform(per_cent());
  command
      ->add_option("--weights", arguments->weights,
                   "Share of the weights of dense layers and convolutions to set to zero")
      ->type_name("SHARE")
      ->transform(per_cent());
  command->add_flag("--per-layer", arguments->per_layer,
                    "With --weights: apply the share to each layer instead of all layers together");
  command
      ->add_option("--keep", options.keep,
                   "Do not prune layers whose names start with NAME; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--finetune", arguments->epochs, "Epochs of fine-tuning after pruning")
      ->type_name("EPOCHS")
      ->check(at_least(1));
  command->add_option("-n,--workers", arguments->workers, "Number of workers for fine-tuning")
      ->type_name("N")
      ->check(at_least(1));
  command->add_flag("--no-evaluation", arguments->no_evaluation,
                    "Do not evaluate the network on the test data before and after");
  command->add_option("-o,--out", arguments->out, "Folder to write (default: only measure)")
      ->type_name("FOLDER");
  command->footer(
      "Channels can be removed if only dense layers and convolutions read them. In residual\n"
      "networks these are the inner channels of blocks. The table shows which layers stay "
      "unchanged\n"
      "and why. Fine-tuning is a run of `artel train` with a tenth of the learning rate, in which\n"
      "weights of zero stay zero. --set overrides its keys.\n\n"
      "Examples:\n"
      "  artel prune runs/resnet56 --channels 50% --finetune 3 -o runs/resnet56_half\n"
      "  artel prune runs/resnet56 --channels 30% --keep layer1\n"
      "  artel prune runs/mlp --weights 90% --finetune 2 -n 2 -o runs/mlp_sparse\n"
      "  artel prune runs/mlp --weights 80% --per-layer --finetune 2 --set train.optimizer.lr=0.01 "
      "-o runs/sparse");
  command->callback([arguments] { prune(*arguments); });
}

}  // namespace artel::cli
