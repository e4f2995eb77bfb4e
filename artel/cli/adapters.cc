#include "artel/nn/adapters.h"

#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/run/config/setup.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/name_prefixes.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string run, out = "merged.safetensors";
  bool apart = false;
};

void export_adapters(const Arguments& arguments) {
  const std::optional<RunFolder> folder = find_run(arguments.run);
  require(folder.has_value(), ErrorKind::not_found, "[{}] is not the folder of a run",
          arguments.run);
  const RunConfig config = read_config(folder->config());
  require(
      !config.model.adapters.empty(), ErrorKind::invalid_argument,
      "[{}] was trained without adapters (model.adapters); its weights are those of the network",
      arguments.run);
  const NamedTensors weights = weights_at(arguments.run);
  NamedTensors chosen;
  if (arguments.apart) {
    for (const NamedTensor& weight : weights)
      if (!begins_with_any(weight.name, config.train.freeze)) chosen.push_back(weight);
  } else {
    chosen = nn::merge_adapters(weights, nn::parse_adapters(config.model.adapters),
                                config.model.name.starts_with("gpt2"));
  }
  checkpoint::write_safetensors(arguments.out, chosen, {{"format", "pt"}});
  println("{}: {} tensors{}", arguments.out, chosen.size(),
          arguments.apart ? ", with the trained parameters; the others are the base's"
                          : ", the network without adapters");
}

}  // namespace

void add_adapters(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "adapters", "Write the weights of a run with adapters, merged or separate");
  command->add_option("RUN", arguments->run, "Run folder, or one of its checkpoints")->required();
  command->add_option("-o,--out", arguments->out, "File to write (default: merged.safetensors)")
      ->type_name("FILE.safetensors");
  command->add_flag("--apart", arguments->apart, "Write only adapters and head, a small file");
  command->footer(
      "Merging adds the adapters to the weights of their layers: the network then needs "
      "none.\n\n"
      "Examples:\n"
      "  artel adapters runs/minilm-reviews -o reviews.safetensors\n"
      "  artel adapters runs/minilm-reviews --apart -o adapters.safetensors");
  command->callback([arguments] { export_adapters(*arguments); });
}

}  // namespace artel::cli
