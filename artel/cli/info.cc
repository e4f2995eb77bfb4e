#include <CLI/CLI.hpp>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/cli/commands.h"
#include "artel/cli/model_table.h"
#include "artel/cli/shared_arguments.h"
#include "artel/nn/zoo/registry.h"
#include "artel/observe/table.h"
#include "artel/optim/optimizer.h"
#include "artel/run/run_folder.h"
#include "artel/run/setup.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string subject;
  std::string input;
  int64_t batch = 0;
  std::vector<std::string> overrides;
};

// "3x32x32".
Shape parse_shape(const std::string& text) {
  std::vector<int64_t> extents;
  for (const std::string& part : split(text, 'x')) {
    const bool digits =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    require(digits && std::stoll(part) > 0, ErrorKind::invalid_argument,
            "--input: got '{}', expected a shape such as 3x32x32", text);
    extents.push_back(std::stoll(part));
  }
  return Shape(std::move(extents));
}

void list_models() {
  observe::Table table({"model", "what", "input"});
  for (const nn::ModelDescription& model : nn::model_list())
    table.add({model.name, model.text, to_string(model.input)});
  fmt::print("{}", table.text());
}

void show_model(const RunConfig& config, const TensorType& sample, const TensorType& target,
                int64_t classes, int64_t batch) {
  const auto optimizer =
      optim::make_optimizer(optim::optimizer_from_options(config.train.optimizer));
  fmt::print("{}", describe_model(make_model(config.model, classes),
                                  {.x = sample,
                                   .y = target,
                                   .batch = batch > 0 ? batch : config.train.batch_size,
                                   .loss = config.train.loss,
                                   .slots = static_cast<int>(optimizer->slots().size())}));
}

void show_config(const std::string& file, const Arguments& arguments) {
  const RunConfig config = read_config(file, arguments.overrides);
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  show_model(config, sample_type(layout, data.augment), {layout.target_type(), layout.target},
             layout.classes, arguments.batch);
}

void show_zoo_model(const nn::ModelDescription& description, const Arguments& arguments) {
  RunConfig config = parse_config("", "defaults", arguments.overrides);
  config.model.name = description.name;
  const TensorType sample = {description.input_type, arguments.input.empty()
                                                         ? description.input
                                                         : parse_shape(arguments.input)};
  if (description.target == nn::ModelTarget::input) config.train.loss = "mse";
  show_model(config, sample, nn::target_of(description, sample), 0, arguments.batch);
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
  std::vector<std::string> names;
  for (const nn::ModelDescription& model : nn::model_list()) {
    if (model.name == subject) return show_zoo_model(model, arguments);
    names.push_back(model.name);
  }
  require(fs::exists(subject), ErrorKind::not_found, "[{}] neither a model nor a file{}", subject,
          did_you_mean(subject, names));
  if (fs::is_directory(subject)) return show_folder(arguments);
  if (subject.ends_with(".toml")) return show_config(subject, arguments);
  show_tensors(subject);
}

}  // namespace

void add_info(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "info", "Layers, shapes, parameters, operations and memory of a model, run or file");
  command->add_option("SUBJECT", arguments->subject,
                      "Model, configuration (.toml), run or weight file; without it, all models");
  command->add_option("--input", arguments->input, "Shape of one sample, for a model by name")
      ->type_name("CxHxW");
  command->add_option("--batch", arguments->batch, "Samples of the training step")
      ->type_name("N")
      ->check(at_least(1));
  add_overrides(command, arguments->overrides);
  command->footer(
      "Examples:\n"
      "  artel info\n"
      "  artel info resnet18 --input 3x32x32 --set model.small_images=true --batch 64\n"
      "  artel info examples/mnist.toml\n"
      "  artel info weights.safetensors");
  command->callback([arguments] { info(*arguments); });
}

}  // namespace artel::cli
