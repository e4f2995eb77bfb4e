#include <CLI/CLI.hpp>
#include <filesystem>

#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/cli/transfer_arguments.h"
#include "artel/cli/workers.h"
#include "artel/run/config/config.h"
#include "artel/transfer/contrastive.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file, out;
  std::vector<std::string> overrides;
  transfer::PretrainOptions options;
  int workers = 1;
};

void pretrain(Arguments& arguments) {
  if (arguments.workers > 1 && !launched_group()) {
    if (const int code = launch_here({.workers = arguments.workers}); code != 0)
      throw CLI::RuntimeError(code);
    return;
  }
  const RunConfig config = read_config(arguments.file, arguments.overrides);
  if (arguments.out.empty())
    arguments.out = "runs/" + std::filesystem::path(arguments.file).stem().string();
  Cluster cluster = launched_cluster();
  cluster.attempt([&] {
    const transfer::PretrainResult result =
        transfer::pretrain(config, cluster, arguments.options, arguments.out);
    if (cluster.rank() == 0)
      println("{}: {} steps, loss {:.4f}; to measure its quality: artel probe {} DATA",
              arguments.out, result.steps, result.loss, arguments.out);
  });
}

}  // namespace

void add_pretrain(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("pretrain", "Train a network without labels by contrastive learning");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  command
      ->add_option("--method", arguments->options.method,
                   "simclr (negatives from the batch) or moco (negatives from a queue, with a "
                   "momentum encoder; default: simclr)")
      ->type_name("NAME");
  command
      ->add_option("--temperature", arguments->options.temperature,
                   "Temperature of the contrastive loss (default: 0.2)")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--queue", arguments->options.queue, "moco: length of the queue (default: 4096)")
      ->type_name("N")
      ->check(at_least(1));
  command
      ->add_option("--momentum", arguments->options.momentum,
                   "moco: momentum of the key encoder (default: 0.99)")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--out", arguments->out, "Run folder (default: runs/NAME of FILE)")
      ->type_name("DIR");
  add_workers(command, arguments->workers);
  add_overrides(command, arguments->overrides);
  command->footer(
      "Labels are ignored. The transforms of data.augment make two views of each sample, and the "
      "loss\n"
      "compares the network's outputs. Networks with batch norm or dropout are refused. To train "
      "an\n"
      "autoencoder, use `artel train` with data.task = \"reconstruct\".\n\n"
      "Examples:\n"
      "  artel pretrain examples/simclr_fashion.toml\n"
      "  artel pretrain examples/simclr_cifar.toml --method moco -n 2\n"
      "  artel probe runs/simclr_fashion fashion_mnist --labels 0.01,0.1,1 --scratch 10");
  command->callback([arguments] { pretrain(*arguments); });
}

}  // namespace artel::cli
