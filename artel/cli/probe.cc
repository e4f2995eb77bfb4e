#include <CLI/CLI.hpp>
#include <thread>

#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/transfer_arguments.h"
#include "artel/observe/progress.h"
#include "artel/observe/table.h"
#include "artel/transfer/label_probe.h"

namespace artel::cli {
namespace {

struct Arguments {
  transfer::BaseSource base;
  std::string data, pooling = "mean";
  std::vector<std::string> layers;
  transfer::LabelProbeOptions options;
};

void probe(Arguments& arguments) {
  if (arguments.options.threads == 0)
    arguments.options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  arguments.options.request = {.layers = arguments.layers,
                               .pooling = transfer::pooling_by_name(arguments.pooling)};
  const transfer::BaseNetwork base = transfer::open_base(arguments.base);
  observe::Progress progress;
  const std::vector<transfer::LabelProbe> probes = transfer::probe_labels(
      base, transfer::data_for(base, arguments.data), arguments.options,
      [&](int64_t done, int64_t samples) { progress.work("features", done, samples); });
  progress.clear();
  observe::Table table({"labels", "share", "linear model", "from scratch"});
  for (const transfer::LabelProbe& each : probes)
    table.add({format_count(each.labels), fmt::format("{:g} %", 100 * each.share),
               fmt::format("{:.4f}", each.accuracy),
               each.scratch ? fmt::format("{:.4f}", *each.scratch) : ""});
  fmt::print("{}", table.text());
}

}  // namespace

void add_probe(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("probe", "Measure the value of a base with few labels");
  add_base(command, arguments->base);
  command
      ->add_option("DATA", arguments->data,
                   "Folder of pictures, NPZ, name of a data set, or TOML; with a test part")
      ->required();
  command->add_option("--layer", arguments->layers, "Layer to use (default: the input of the head)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      ->add_option("--pool", arguments->pooling,
                   "Reduction to one vector: mean, max, or whole (default: mean)")
      ->type_name("HOW");
  command
      ->add_option("--labels", arguments->options.shares,
                   "Labelled shares of the training samples (default: 0.01,0.1,1)")
      ->delimiter(',')
      ->type_name("X");
  command
      ->add_option(
          "--scratch", arguments->options.scratch_epochs,
          "Also train the same layers from random weights on the same labels, for this many epochs")
      ->type_name("EPOCHS")
      ->check(at_least(1));
  command->add_option("--threads", arguments->options.threads, "Cores to use (default: all)")
      ->type_name("N");
  arguments->options.threads = 0;
  command->add_option("--seed", arguments->options.seed,
                      "Random seed for selecting the labelled samples");
  add_overrides(command, arguments->base.overrides);
  command->footer(
      "A linear model is fitted on the features of the samples with labels and judged on the test "
      "part.\n\n"
      "Examples:\n"
      "  artel probe runs/simclr_fashion fashion_mnist --scratch 10\n"
      "  artel probe runs/autoencoder fashion_mnist --layer encoder --pool whole --labels "
      "0.01,0.1");
  command->callback([arguments] { probe(*arguments); });
}

}  // namespace artel::cli
