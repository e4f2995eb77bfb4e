#include <CLI/CLI.hpp>

#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/train_file.h"
#include "artel/data/fetch.h"
#include "artel/transfer/base_network.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> networks;  // teachers, then the student
  double temperature = 0, weight = 0;
  std::shared_ptr<TrainArguments> train = std::make_shared<TrainArguments>();
};

// A published base becomes a configuration that names its weights.
std::string teacher_at(const std::string& name) {
  if (fs::exists(name)) return fs::absolute(name).lexically_normal().string();
  const transfer::BaseNetwork base = transfer::open_base({.name = name});
  RunConfig config;
  config.model = base.model;
  config.data.augment = base.prepare;
  const fs::path folder = data::data_folder() / "teachers";
  fs::create_directories(folder);
  const fs::path file = folder / (name + ".toml");
  write_file_atomically(file, to_toml(config));
  return file.string();
}

void distil(Arguments& arguments) {
  require(arguments.networks.size() >= 2, ErrorKind::invalid_argument,
          "distil: got only '{}', expected one or more teachers and the configuration of the "
          "student",
          join(arguments.networks, ", "));
  TrainArguments& train_arguments = *arguments.train;
  train_arguments.file = arguments.networks.back();
  require(!fs::is_directory(train_arguments.file), ErrorKind::invalid_argument,
          "[{}] is a folder, expected the configuration of the student (TOML) as the last argument",
          train_arguments.file);
  std::vector<std::string> teachers;
  for (size_t i = 0; i + 1 < arguments.networks.size(); ++i)
    teachers.push_back(teacher_at(arguments.networks[i]));
  std::vector<std::string>& overrides = train_arguments.options.overrides;
  overrides.push_back("distil.teachers=" + toml_value(teachers));
  if (arguments.temperature > 0)
    overrides.push_back(fmt::format("distil.temperature={}", arguments.temperature));
  if (arguments.weight > 0) overrides.push_back(fmt::format("distil.weight={}", arguments.weight));
  train(train_arguments);
}

}  // namespace

void add_distil(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "distil", "Train a small network on the outputs of larger ones and the labels");
  command
      ->add_option("NETWORKS", arguments->networks,
                   "One or more teachers (runs, checkpoints, configurations with model.weights, or "
                   "names of published models), then the configuration of the student (TOML)")
      ->type_name("TEACHER... STUDENT.toml")
      ->required();
  command
      ->add_option("--temperature", arguments->temperature,
                   "Divisor of the scores before the softmax (distil.temperature)")
      ->type_name("X")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--weight", arguments->weight,
                   "Weight of the teachers in the loss (distil.weight)")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0));
  add_training(command, arguments->train);
  command->footer(
      "Trains like `artel train STUDENT.toml`, on any number of workers, with checkpoints and\n"
      "--resume. The outputs of several teachers are averaged. They are computed only once if the\n"
      "samples are not augmented at random.\n\n"
      "Examples:\n"
      "  artel distil runs/resnet56 resnet20.toml\n"
      "  artel distil runs/first runs/second runs/third small.toml --temperature 2\n"
      "  artel distil runs/bert reviews.toml -n 2 --set train.epochs=5\n"
      "  artel distil resnet50_keras photos.toml --weight 0.5");
  command->callback([arguments] { distil(*arguments); });
}

}  // namespace artel::cli
