#include "artel/transfer/finetune.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/transfer_arguments.h"
#include "artel/cli/workers.h"
#include "artel/observe/table.h"

namespace artel::cli {
namespace {

struct Arguments {
  transfer::BaseSource base;
  std::string data;
  transfer::FinetuneOptions options;
  RunOptions run;
  int workers = 1;
  int64_t gradually = 0, epochs = 0;
  bool print = false;
};

std::string cell(const Evaluation& evaluation, bool accuracy) {
  if (evaluation.samples == 0) return "";
  return fmt::format("{:.4f}", accuracy ? evaluation.accuracy : evaluation.loss);
}

void show(const transfer::Finetuning& plan, const transfer::FinetuneScore& before,
          const transfer::FinetuneScore& after) {
  const bool has_classes = plan.data.layout().target_kind == data::TargetKind::classes;
  observe::Table table({"", "before", "after"});
  const auto add = [&](const char* name, const Evaluation& first, const Evaluation& last) {
    if (last.samples == 0) return;
    if (has_classes)
      table.add({fmt::format("{} accuracy", name), cell(first, true), cell(last, true)});
    table.add({fmt::format("{} loss", name), cell(first, false), cell(last, false)});
  };
  add("validation", before.validation, after.validation);
  add("test", before.test, after.test);
  fmt::print("{}", table.text());
}

// "layer4.0, layer4.1, fc".
void show_plan(const transfer::Finetuning& plan) {
  for (const std::string& note : plan.notes) println("{}", note);
  std::vector<std::string> names;
  int64_t trained = 0, all = 0;
  for (size_t i = 0; i < plan.blocks.size(); ++i) {
    all += plan.blocks[i].parameters;
    if (!plan.trained[i]) continue;
    trained += plan.blocks[i].parameters;
    names.push_back(plan.blocks[i].name);
  }
  if (!plan.config.model.adapters.empty()) {
    println("training adapters ({}) next to the layers of all blocks, and {}",
            plan.config.model.adapters, names.empty() ? "nothing else" : join(names, ", "));
    return;
  }
  println("training {} of {} parameters: {}", format_count(trained), format_count(all),
          names.size() == plan.blocks.size() ? "all blocks" : join(names, ", "));
}

std::string name_for(const Arguments& arguments) {
  const auto stem = [](const std::string& path) {
    const std::filesystem::path trimmed =
        path.ends_with('/') ? path.substr(0, path.size() - 1) : path;
    return trimmed.stem().string();
  };
  return fmt::format("{}-{}", stem(arguments.base.name), stem(arguments.data));
}

// The first that is free of runs/NAME, runs/NAME-2, ...: stages need to know where the others are.
std::string free_folder(const std::string& name) {
  std::string folder = "runs/" + name;
  for (int i = 2; std::filesystem::exists(folder); ++i) folder = fmt::format("runs/{}-{}", name, i);
  return folder;
}

void finetune(Arguments& arguments) {
  if (arguments.epochs > 0)
    arguments.options.overrides.push_back(fmt::format("train.epochs={}", arguments.epochs));
  if (arguments.workers > 1)
    arguments.options.overrides.push_back(fmt::format("cluster.workers={}", arguments.workers));
  const transfer::BaseNetwork base = transfer::open_base(arguments.base);
  const transfer::Finetuning plan =
      transfer::plan_finetuning(base, arguments.data, arguments.options);
  if (arguments.print) {
    fmt::print("{}", to_toml(plan.config));
    return;
  }
  const bool leads = !launched_group() || speaks_for_the_run();
  if (arguments.run.out.empty()) arguments.run.out = free_folder(name_for(arguments));
  arguments.run.stop_on_signals = true;
  arguments.run.uses_network = false;
  const bool launches = Run(plan.config, arguments.run).lacks_workers();
  if (launches) {
    transfer::FinetuneScore before = transfer::score_before(plan);
    show_plan(plan);
    const int code =
        launch_here({.workers = arguments.workers, .elastic = is_elastic(plan.config)});
    if (code != 0) throw CLI::RuntimeError(code);
    return show(plan, before, transfer::score_after(plan, arguments.run.out));
  }
  const bool alone = !launched_group();
  std::optional<transfer::FinetuneScore> before;
  if (alone) {
    before = transfer::score_before(plan);
    show_plan(plan);
  }
  std::vector<transfer::Finetuning> stages = {plan};
  const auto folder_of = [&](size_t stage) {
    return fmt::format("{}/stage-{}", arguments.run.out, stage + 1);
  };
  if (arguments.gradually > 0) {
    require(alone, ErrorKind::unsupported,
            "--gradually: stages are for one worker so far; try -n 1 with more --threads");
    stages = transfer::in_stages(plan, arguments.gradually, folder_of);
  }
  for (size_t i = 0; i < stages.size(); ++i) {
    RunOptions options = arguments.run;
    if (i + 1 < stages.size()) {
      options.out = folder_of(i);
      println("stage {} of {}", i + 1, stages.size());
      show_plan(stages[i]);
    }
    const RunResult result = Run(stages[i].config, options).train();
    if (result.signal != 0) throw CLI::RuntimeError(128 + result.signal);
  }
  if (!alone || !leads) return;
  show(plan, *before, transfer::score_after(plan, arguments.run.out));
  println("to use it: artel predict {} --best FILE", shell_word(arguments.run.out));
}

}  // namespace

void add_finetune(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "finetune", "Fine-tune a trained network on your own pictures, texts, or arrays");
  add_base(command, arguments->base);
  command
      ->add_option("--data", arguments->data,
                   "Folder of pictures (one subfolder per class), CSV of texts with classes, a "
                   "text, NPZ, name of a data set, or TOML")
      ->required();
  command
      ->add_option("--train", arguments->options.train,
                   "Blocks to train: head, \"last N\" (the head and N blocks before it), all, or "
                   "names of blocks (default: by the number of samples)")
      ->type_name("WHAT");
  command->add_option("--epochs", arguments->epochs, "Maximum number of epochs")
      ->type_name("N")
      ->check(at_least(1));
  command->add_option("--rate", arguments->options.rate, "Learning rate of the head")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      ->add_option(
          "--below", arguments->options.below,
          "Learning rate of the block before the head, relative to the head (default: 0.1)")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--decay", arguments->options.decay,
                   "Learning rate of each further block, relative to the one above (default: 0.8)")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--gradually", arguments->gradually,
                   "Unfreeze gradually: the head for N epochs, then one more block, then twice as "
                   "many each time")
      ->type_name("N")
      ->check(at_least(1));
  command
      ->add_option("--lora", arguments->options.lora,
                   "Train low-rank adapters of this rank and the head, instead of blocks; for "
                   "transformers")
      ->type_name("RANK")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--new-head", arguments->options.new_head,
                    "Replace the head even if the classes are the same");
  command
      ->add_option("--size", arguments->options.side,
                   "Side of the images (default: that of the base)")
      ->type_name("PIXELS")
      ->check(at_least(1));
  command->add_option("--out", arguments->run.out, "Folder of the run (default: runs/BASE-DATA)")
      ->type_name("DIR");
  command->add_flag("--print", arguments->print,
                    "Print the configuration (TOML) for `artel train` instead of training");
  add_workers(command, arguments->workers);
  add_overrides(command, arguments->options.overrides);
  command->footer(
      "Holds out 15 % of the data for validation and, if the data has no test part, another part "
      "for the\n"
      "final test. Uses early stopping by the validation loss (from 1,000 validation samples on, "
      "by\n"
      "accuracy) and keeps the best weights.\n\n"
      "Examples:\n"
      "  artel finetune runs/cifar --data photos\n"
      "  artel finetune resnet18 --weights resnet18.safetensors --data flowers --train \"last 2\"\n"
      "  artel finetune runs/bert_pretrain --data reviews.csv --train all -n 2\n"
      "  artel finetune runs/cifar --data photos --train all --gradually 2\n"
      "  artel finetune minilm --data reviews.csv --lora 8\n"
      "  artel finetune runs/cifar --data photos --print > photos.toml");
  command->callback([arguments] { finetune(*arguments); });
}

}  // namespace artel::cli
