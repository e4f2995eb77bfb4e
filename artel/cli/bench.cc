#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/generation_bench.h"
#include "artel/cli/profile.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/step_bench.h"
#include "artel/nn/zoo/registry.h"
#include "artel/observe/table.h"
#include "artel/run/setup.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::string profiled;
  std::vector<std::string> overrides;
  int threads = 0, lanes = 1;
  double seconds = 3;
  bool json = false, interactive = false;
};

// The networks that are compared with other frameworks, on the samples that they are compared with.
struct BenchModel {
  std::string name;
  int64_t batch;
  TensorType x;  // of one sample
  nn::ModelOptions options = {.classes = 10};
  TensorType y = {DType::i32, Shape{}};
  std::string zoo_name = name;
  optim::OptimizerConfig optimizer = optim::sgd(0.01, {.momentum = 0.9});
};

// A GPT of characters.
BenchModel small_gpt(std::string name, int64_t batch, int64_t positions) {
  const TensorType tokens = {DType::i32, {positions}};
  return {.name = std::move(name),
          .batch = batch,
          .x = tokens,
          .options = {.classes = 65, .width = 384, .depth = 6, .heads = 6, .positions = positions},
          .y = tokens,
          .zoo_name = "gpt2",
          .optimizer = optim::adamw(3e-4)};
}

const std::vector<BenchModel>& bench_models() {
  static const TensorType images = {DType::f32, {3, 32, 32}};
  static const std::vector<BenchModel> models = {
      {"mlp", 128, {DType::f32, {784}}},
      {"lenet5", 64, {DType::f32, {1, 28, 28}}},
      {"vgg11_bn", 64, images, {.classes = 10, .small_images = true}},
      {"resnet18", 64, images, {.classes = 10, .small_images = true}},
      {"resnet20", 128, images},
      small_gpt("gpt", 8, 256),
      small_gpt("gpt_2048", 1, 2048),
      {.name = "vit",
       .batch = 64,
       .x = images,
       .options = {.classes = 10, .patch = 4},
       .zoo_name = "vit_tiny"}};
  return models;
}

std::vector<std::string> bench_names() {
  std::vector<std::string> names;
  for (const BenchModel& model : bench_models()) names.push_back(model.name);
  return names;
}

const BenchModel& find_model(const std::string& name) {
  for (const BenchModel& model : bench_models())
    if (model.name == name) return model;
  fail(ErrorKind::invalid_argument, "no benchmark is called '{}'{}; there are {}", name,
       did_you_mean(name, bench_names()), join(bench_names(), ", "));
}

StepBench make_bench(const BenchModel& model, const Arguments& arguments) {
  return StepBench(nn::model_by_name(model.zoo_name, model.options),
                   {.x = model.x,
                    .y = model.y,
                    .classes = model.options.classes,
                    .batch = model.batch,
                    .threads = arguments.threads,
                    .lanes = arguments.lanes,
                    .optimizer = model.optimizer});
}

StepBench make_bench(const RunConfig& config, const Arguments& arguments) {
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  return StepBench(make_model(config.model, layout.classes),
                   {.x = sample_type(layout, data.augment),
                    .y = {layout.target_type(), layout.target},
                    .classes = layout.classes,
                    .batch = config.train.batch_size,
                    .threads = arguments.threads,
                    .lanes = arguments.lanes,
                    .loss = config.train.loss,
                    .optimizer = optim::optimizer_from_options(config.train.optimizer)});
}

double peak_memory_megabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

nlohmann::ordered_json measure(const std::string& name, StepBench& bench, double seconds) {
  const StepBench::Result result = bench.run(seconds);
  const auto samples = static_cast<double>(result.steps * bench.options().batch);
  return {{"model", name},
          {"batch", bench.options().batch},
          {"threads", bench.options().threads},
          {"lanes", bench.options().lanes},
          {"samples_per_second", samples / result.seconds},
          {"peak_rss_mb", peak_memory_megabytes()}};
}

// Each line "go SECONDS" is answered by one line of JSON, so that another program can take turns
// with this one.
void serve(const std::string& name, StepBench& bench) {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    double seconds = -1;
    words >> command >> seconds;
    require(command == "go" && seconds >= 0, ErrorKind::invalid_argument,
            "got '{}', expected 'go SECONDS'", line);
    println("{}", measure(name, bench, seconds).dump());
  }
}

void bench_train(const Arguments& arguments) {
  const std::vector<std::string> names =
      arguments.models.empty() ? bench_names() : arguments.models;
  require(!arguments.interactive || names.size() == 1, ErrorKind::invalid_argument,
          "--interactive: got {} models, expected one", names.size());
  observe::Table table({"model", "batch", "threads", "lanes", "samples/s", "peak memory"});
  for (const std::string& name : names) {
    StepBench bench = make_bench(find_model(name), arguments);
    if (arguments.interactive) return serve(name, bench);
    bench.run(0);  // the first step makes kernels and buffers
    const nlohmann::ordered_json result = measure(name, bench, arguments.seconds);
    if (arguments.json) println("{}", result.dump());
    table.add({name, result["batch"].dump(), result["threads"].dump(), result["lanes"].dump(),
               fmt::format("{:.1f}", result["samples_per_second"].get<double>()),
               fmt::format("{:.0f} MB", result["peak_rss_mb"].get<double>())});
  }
  if (!arguments.json) fmt::print("{}", table.text());
}

void bench_profile(const Arguments& arguments) {
  StepBench bench =
      arguments.profiled.ends_with(".toml")
          ? make_bench(read_config(arguments.profiled, arguments.overrides), arguments)
          : make_bench(find_model(arguments.profiled), arguments);
  fmt::print("{}", profile(bench, arguments.seconds));
}

void add_measurement(CLI::App* command, Arguments& arguments) {
  command->add_option("--threads", arguments.threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(at_least(1));
  command->add_option("--lanes", arguments.lanes, "Parts of a batch")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--seconds", arguments.seconds, "Duration")
      ->type_name("S")
      ->check(at_least(0))
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("bench", "How fast training steps are, and why");
  CLI::Option* profiled =
      command
          ->add_option("--profile", arguments->profiled,
                       "Time of every kernel of a step of this configuration (.toml) or benchmark")
          ->type_name("FILE");
  add_measurement(command, *arguments);
  add_overrides(command, arguments->overrides);
  command->require_subcommand(0, 1);
  command->footer(
      "Examples:\n"
      "  artel bench --profile examples/fashion_mnist.toml\n"
      "  artel bench --profile resnet18 --threads 1\n"
      "  artel bench train\n"
      "  artel bench train vgg11_bn --threads 2 --lanes 2 --seconds 5 --json");
  command->callback([=] {
    if (!profiled->empty())
      bench_profile(*arguments);
    else if (command->get_subcommands().empty())
      throw CLI::RequiredError("--profile, train or generate");
  });

  CLI::App* training = command->add_subcommand("train", "Whole training steps on random data");
  training->add_option("MODEL", arguments->models,
                       fmt::format("Of {}; without it, all", join(bench_names(), ", ")));
  add_measurement(training, *arguments);
  training->add_flag("--json", arguments->json, "One JSON object for each model");
  training->add_flag("--interactive", arguments->interactive,
                     "Answer each line \"go SECONDS\" of the input with one JSON line");
  training->footer("Example:\n  artel bench train mlp --threads 1 --json");
  training->callback([arguments] { bench_train(*arguments); });
  add_generation_bench(*command);
}

}  // namespace artel::cli
