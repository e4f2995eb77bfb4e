#include "artel/transfer/advise.h"

#include <CLI/CLI.hpp>
#include <thread>

#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/transfer_arguments.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/observe/terminal.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> names;
  transfer::BaseSource base;
  transfer::AdviseOptions options;
  bool check = false;
  double budget = 600;
  std::string out = "runs/advise";
};

void compare(const std::vector<transfer::Advice>& all) {
  observe::Table table({"base", "way", "on", "forecast", "from", "to"});
  for (const transfer::Advice& advice : all) {
    const transfer::Forecast& way = advice.chosen();
    table.add({advice.base, std::string(to_string(way.way)), way.what,
               fmt::format("{:.4f}", way.accuracy), fmt::format("{:.4f}", way.low),
               fmt::format("{:.4f}", way.high)});
  }
  fmt::print("\n{}", table.text());
}

void advise(Arguments& arguments) {
  require(arguments.names.size() >= 2, ErrorKind::invalid_argument,
          "advise: got {} names, expected a base (or several) and the data",
          arguments.names.size());
  const std::string data = arguments.names.back();
  if (arguments.options.threads == 0)
    arguments.options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<transfer::Advice> all;
  for (size_t i = 0; i + 1 < arguments.names.size(); ++i) {
    arguments.base.name = arguments.names[i];
    const transfer::BaseNetwork base = transfer::open_base(arguments.base);
    observe::Progress progress;
    transfer::Advice advice = transfer::advise(
        base, transfer::data_for(base, data, arguments.options.side), arguments.options,
        [&](int64_t done, int64_t samples) { progress.work("features", done, samples); });
    progress.clear();
    if (arguments.check)
      transfer::check_ways(base, data, arguments.options, arguments.budget, arguments.out, advice);
    fmt::print("{}{}", i > 0 ? "\n" : "", to_text(advice, 72, true));
    all.push_back(std::move(advice));
  }
  if (all.size() > 1) compare(all);
}

}  // namespace

void add_advise(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "advise", "Measure the best way to use a trained network on your data");
  command->add_option("BASE... DATA", arguments->names, "One or more bases, then the data")
      ->required();
  command
      ->add_option("--weights", arguments->base.weights,
                   "Weight file of a zoo network, in any supported format")
      ->type_name("FILE");
  command
      ->add_option("--samples", arguments->options.most_samples,
                   "Maximum number of samples for the measurements (default: 2000)")
      ->type_name("N")
      ->check(at_least(20));
  command
      ->add_option("--size", arguments->options.side,
                   "Side of the images (default: that of the base)")
      ->type_name("PIXELS")
      ->check(at_least(1));
  command->add_flag("--check", arguments->check,
                    "Try all four ways and show their accuracy next to the forecasts");
  command
      ->add_option("--budget", arguments->budget,
                   "With --check: seconds for each fine-tuning (default: 600)")
      ->type_name("SECONDS")
      ->check(at_least(1));
  command->add_option("--out", arguments->out, "With --check: folder of the runs")
      ->type_name("DIR");
  command->add_option("--threads", arguments->options.threads, "Cores to use (default: all)")
      ->type_name("N");
  arguments->options.threads = 0;
  command->add_option("--seed", arguments->options.seed, "Seed of the held-out samples");
  add_overrides(command, arguments->base.overrides);
  command->footer(
      "Computes features of each block for some samples, fits linear models on growing parts of "
      "them, and\n"
      "forecasts four ways: a small model on the last features, one on early features, fine-tuning "
      "the\n"
      "end, and training all blocks. docs/transfer.md explains the method.\n\n"
      "Examples:\n"
      "  artel advise runs/cifar fashion_mnist\n"
      "  artel advise runs/cifar runs/mnist photos\n"
      "  artel advise resnet18 photos --weights resnet18.safetensors --check --budget 300");
  command->callback([arguments] { advise(*arguments); });
}

}  // namespace artel::cli
