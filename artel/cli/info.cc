#include <CLI/CLI.hpp>
#include <filesystem>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/cli/commands.h"
#include "artel/cli/model_table.h"
#include "artel/cli/plan_training.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/subject.h"
#include "artel/cluster/cluster.h"
#include "artel/nn/zoo/registry.h"
#include "artel/observe/table.h"
#include "artel/optim/optimizer.h"
#include "artel/run/folder/run_folder.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/strategies/pipeline.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string subject;
  std::string input;
  int64_t batch = 0;
  std::vector<std::string> overrides;
};

void list_models() {
  observe::Table table({"model", "what", "input"});
  for (const nn::ModelDescription& model : nn::model_list())
    table.add({model.name, model.text, to_string(model.input)});
  fmt::print("{}", table.text());
}

void show_model(const Subject& subject, int64_t batch) {
  const RunConfig& config = subject.config;
  const auto optimizer =
      optim::make_optimizer(optim::optimizer_from_options(config.train.optimizer));
  // As in training: a thread for each core.
  const auto threads =
      static_cast<int>(config.cluster.threads > 0 ? config.cluster.threads : Cluster().cores());
  const int64_t workers = std::max<int64_t>(1, config.cluster.workers.most);
  const int64_t all = batch > 0 ? batch : config.train.batch_size.of(workers);
  const Model model = subject.model();
  LaneRequest request = lane_request(config, model, subject.x, static_cast<int>(workers));
  request.batch = all;
  const int64_t lanes = lanes_of_new_run(request).lanes;
  const auto own_lanes = static_cast<int>((lanes + workers - 1) / workers);
  const auto& sharding = config.cluster.strategy_options.of<ShardingOptions>();
  fmt::print("{}", describe_model(model, {.x = subject.x,
                                          .y = subject.y,
                                          .batch = (all + workers - 1) / workers,
                                          .loss = config.train.loss,
                                          .slots = static_cast<int>(optimizer->slots().size()),
                                          .lanes = own_lanes,
                                          .threads = threads,
                                          .workers = static_cast<int>(workers),
                                          .sharding = workers > 1 ? sharding : ShardingOptions(),
                                          .mirrors = has_mirrors(config),
                                          .trained = [&](const std::string& name) {
                                            return !begins_with_any(name, config.train.freeze);
                                          }}));
  if (const std::string time = own_step_text(subject, (all + workers - 1) / workers, own_lanes);
      !time.empty())
    println("{}", time);
  if (const int64_t stages = config.cluster.strategy_options.of<PipelineOptions>().pipeline;
      stages > 1)
    println("this is without the pipeline; for each of its workers: artel plan FILE --pipeline {}",
            stages);
}

void show_config(const std::string& file, const Arguments& arguments) {
  show_model(subject_of_config(file, arguments.overrides), arguments.batch);
}

void show_tensors(const fs::path& path) {
  observe::Table table({"tensor", "type", "shape", "bytes"});
  int64_t elements = 0;
  const NamedTensors tensors = weights_at(path);
  for (const auto& [name, tensor] : tensors) {
    table.add({name, std::string(to_string(tensor.dtype())), to_string(tensor.shape()),
               format_bytes(static_cast<double>(tensor.bytes()))});
    elements += tensor.elements();
  }
  fmt::print("{}", table.text());
  println("{} tensors, {} elements", tensors.size(), format_count(elements));
}

void show_folder(const Arguments& arguments) {
  const RunFolder folder(arguments.subject);
  if (!fs::exists(folder.config())) return show_tensors(arguments.subject);
  show_config(folder.config().string(), arguments);
  for (const fs::path& path : checkpoint::list_checkpoints(folder.checkpoints()))
    println("checkpoint {}", path.string());
  if (const auto best = checkpoint::best_checkpoint(folder.checkpoints()))
    println("the best is {}", best->filename().string());
}

void info(const Arguments& arguments) {
  const std::string& subject = arguments.subject;
  if (subject.empty()) return list_models();
  if (const auto model = subject_of_model(subject, arguments.input, arguments.overrides))
    return show_model(*model, arguments.batch);
  if (!fs::exists(subject)) fail_unknown_subject(subject);
  if (fs::is_directory(subject)) return show_folder(arguments);
  if (subject.ends_with(".toml")) return show_config(subject, arguments);
  show_tensors(subject);
}

}  // namespace

void add_info(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "info", "Show layers, shapes, parameters, operations and memory of a model, run or file");
  command->add_option("SUBJECT", arguments->subject,
                      "Model, configuration (.toml), run or weight file; without it, all models");
  command->add_option("--input", arguments->input, "Shape of one sample, for a model by name")
      ->type_name("CxHxW");
  command->add_option("--batch", arguments->batch, "Samples in the training step")
      ->type_name("N")
      ->check(at_least(1));
  add_overrides(command, arguments->overrides);
  command->footer(
      "Examples:\n"
      "  artel info\n"
      "  artel info gpt2 --input 128 --batch 4 --set cluster.lanes=2 --set train.optimizer=adamw\n"
      "  artel info resnet18 --input 3x32x32 --set model.small_images=true --batch 64\n"
      "  artel info examples/mnist.toml\n"
      "  artel info weights.safetensors");
  command->callback([arguments] { info(*arguments); });
}

}  // namespace artel::cli
