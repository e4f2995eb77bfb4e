#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/process.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/generation_bench.h"
#include "artel/cli/profile.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/step_bench.h"
#include "artel/cli/subject.h"
#include "artel/nn/parse_layers.h"
#include "artel/nn/zoo/registry.h"
#include "artel/observe/table.h"
#include "artel/train/name_prefixes.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::vector<std::string> models;
  std::string profiled, input, device = "cpu";
  std::vector<std::string> overrides;
  int threads = 0, lanes = 1;
  int64_t batch = 0;
  double seconds = 3;
  bool json = false, interactive = false;
};

// The networks for comparisons with other frameworks, and the samples they are compared on.
struct BenchModel {
  std::string name;
  int64_t batch;
  TensorType x;  // of one sample
  nn::ModelOptions options = {.classes = 10};
  TensorType y = {DType::i32, Shape{}};
  std::string zoo_name = name;
  optim::OptimizerConfig optimizer = optim::sgd(0.01, {.momentum = 0.9});
  std::vector<std::string> layers = {};  // in place of a network of the zoo
  std::vector<std::string> freeze = {};  // layers that are not trained

  Model network() const {
    return layers.empty() ? nn::model_by_name(zoo_name, options) : nn::parse_layers(layers);
  }
};

// A character-level GPT.
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

// Two layers of 256 units that read 100 positions.
BenchModel recurrent(const std::string& kind) {
  return {.name = kind,
          .batch = 64,
          .x = {DType::f32, {100, 256}},
          .layers = {kind + " 256 layers 2 last", "dense 10"}};
}

// Photographs for a network that starts from trained weights, some of which are frozen.
BenchModel fine_tuned(std::string name, std::vector<std::string> freeze) {
  return {.name = std::move(name),
          .batch = 32,
          .x = {DType::f32, {3, 224, 224}},
          .options = {.classes = 10},
          .zoo_name = "resnet18",
          .freeze = std::move(freeze)};
}

const std::vector<BenchModel>& bench_models() {
  static const TensorType images = {DType::f32, {3, 32, 32}};
  static const std::vector<BenchModel> models = {
      {"mlp", 128, {DType::f32, {784}}},
      {"lenet5", 64, {DType::f32, {1, 28, 28}}},
      {"vgg11_bn", 64, images, {.classes = 10, .small_images = true}},
      {"resnet18", 64, images, {.classes = 10, .small_images = true}},
      {"resnet20", 128, images},
      {"resnet50", 16, {DType::f32, {3, 224, 224}}, {.classes = 1000}},
      small_gpt("gpt", 8, 256),
      small_gpt("gpt_2048", 1, 2048),
      {.name = "gpt2",
       .batch = 4,
       .x = {DType::i32, {128}},
       .options = {.classes = 50257},
       .y = {DType::i32, {128}},
       .optimizer = optim::adamw(3e-4)},
      {.name = "vit",
       .batch = 64,
       .x = images,
       .options = {.classes = 10, .patch = 4},
       .zoo_name = "vit_tiny"},
      recurrent("lstm"),
      recurrent("gru"),
      fine_tuned("resnet18_all", {}),
      fine_tuned("resnet18_end", {"conv1.", "bn1.", "layer1.", "layer2.", "layer3."}),
      fine_tuned("resnet18_head", {"conv1.", "bn1.", "layer"})};
  return models;
}

std::vector<std::string> bench_names() {
  std::vector<std::string> names;
  for (const BenchModel& model : bench_models()) names.push_back(model.name);
  return names;
}

const BenchModel* find_model(const std::string& name) {
  const auto found = std::ranges::find(bench_models(), name, &BenchModel::name);
  return found == bench_models().end() ? nullptr : &*found;
}

StepBench make_bench(const BenchModel& model, const Arguments& arguments) {
  const int64_t batch = arguments.batch > 0 ? arguments.batch : model.batch;
  const auto trained = [&](const std::string& name) {
    return !begins_with_any(name, model.freeze);
  };
  const int lanes =
      arguments.lanes > 0
          ? arguments.lanes
          : default_lanes(batch, uses_batch_statistics(model.network(), model.x, trained));
  return StepBench(model.network(), {.x = model.x,
                                     .y = model.y,
                                     .classes = model.options.classes,
                                     .batch = batch,
                                     .threads = arguments.threads,
                                     .lanes = lanes,
                                     .device = arguments.device,
                                     .freeze = model.freeze,
                                     .optimizer = model.optimizer});
}

StepBench make_bench(const Subject& subject, const Arguments& arguments) {
  const RunConfig& config = subject.config;
  const int lanes =
      arguments.lanes > 0
          ? arguments.lanes
          : lanes_of_new_run(lane_request(config, subject.model(), subject.x, 1)).lanes;
  return StepBench(subject.model(),
                   {.x = subject.x,
                    .y = subject.y,
                    .classes = subject.layout.classes,
                    .batch = arguments.batch > 0 ? arguments.batch : config.train.batch_size.of(1),
                    .threads = arguments.threads,
                    .lanes = lanes,
                    .device = arguments.device,
                    .loss = config.train.loss,
                    .freeze = config.train.freeze,
                    .optimizer = optim::optimizer_from_options(config.train.optimizer)});
}

// A benchmark, or with a shape or keys, or by another name, a model or configuration.
StepBench make_bench(const std::string& name, const Arguments& arguments) {
  const BenchModel* const known = find_model(name);
  if (known != nullptr && arguments.input.empty() && arguments.overrides.empty())
    return make_bench(*known, arguments);
  return make_bench(subject_of(name, arguments.input, arguments.overrides), arguments);
}

nlohmann::ordered_json measure(const std::string& name, StepBench& bench, double seconds) {
  const StepBench::Result result = bench.run(seconds);
  const auto samples = static_cast<double>(result.steps * bench.options().batch);
  nlohmann::ordered_json row = {
      {"model", name},
      {"batch", bench.options().batch},
      {"threads", bench.options().threads},
      {"lanes", bench.options().lanes},
      {"samples_per_second", samples / result.seconds},
      {"cpu_seconds_per_step", result.cpu_seconds / static_cast<double>(result.steps)},
      {"peak_rss_mb", static_cast<double>(peak_memory_bytes()) / (1 << 20)}};
  if (&bench.device() == &cpu()) return row;
  row["device"] = bench.device().name();
  row["bytes_to_device_per_step"] = result.copied.to_device / result.steps;
  row["bytes_from_device_per_step"] = result.copied.from_device / result.steps;
  return row;
}

// In a process of its own, whose peak of memory is that of this model alone.
nlohmann::ordered_json measure_apart(const std::string& name, const Arguments& arguments) {
  int ends[2];
  require(::pipe(ends) == 0, ErrorKind::io, "cannot make a pipe: {}", std::strerror(errno));
  std::fflush(stdout);
  const pid_t process = ::fork();
  require(process >= 0, ErrorKind::io, "cannot start a process: {}", std::strerror(errno));
  if (process == 0) {
    ::close(ends[0]);
    int code = 1;
    try {
      StepBench bench = make_bench(name, arguments);
      bench.run(0);  // the first step creates kernels and buffers
      const std::string text = measure(name, bench, arguments.seconds).dump();
      code =
          ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
    } catch (const std::exception& error) {
      tell(stderr, fmt::format("artel: error: {}\n", error.what()));
    }
    ::_exit(code);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  if (status != 0) throw CLI::RuntimeError(1);
  return ordered_json_or_null(text);
}

// Each line "go SECONDS" is answered by one line of JSON, so another program can take turns with
// this one.
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
  for (const std::string& name : names)  // before the first takes its time
    if (find_model(name) == nullptr) subject_of(name, arguments.input, arguments.overrides);
  if (arguments.interactive) {
    StepBench bench = make_bench(names.front(), arguments);
    return serve(names.front(), bench);
  }
  for (const std::string& name : names) {
    const nlohmann::ordered_json result = measure_apart(name, arguments);
    if (arguments.json) println("{}", result.dump());
    table.add({name, result["batch"].dump(), result["threads"].dump(), result["lanes"].dump(),
               fmt::format("{:.1f}", result["samples_per_second"].get<double>()),
               fmt::format("{:.0f} MB", result["peak_rss_mb"].get<double>())});
  }
  if (!arguments.json) fmt::print("{}", table.text());
}

void bench_profile(const Arguments& arguments) {
  StepBench bench = make_bench(arguments.profiled, arguments);
  fmt::print("{}", profile(bench, arguments.seconds));
}

void add_measurement(CLI::App* command, Arguments& arguments) {
  command->add_option("--threads", arguments.threads, "Cores to use (default: all)")
      ->type_name("N")
      ->check(at_least(1));
  command->add_option("--lanes", arguments.lanes, "Parts of a batch; 0: as many as in training")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--input", arguments.input, "Shape of one sample, for a model by name")
      ->type_name("CxHxW");
  command->add_option("--batch", arguments.batch, "Samples of a step (default: the benchmark's)")
      ->type_name("N")
      ->check(at_least(1));
  command
      ->add_option("--device", arguments.device, "Where to compute: cpu, opencl, opencl:N, or auto")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--seconds", arguments.seconds, "Duration")
      ->type_name("S")
      ->check(at_least(0))
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("bench", "Measure the speed of training steps, and profile them");
  CLI::Option* profiled = command
                              ->add_option("--profile", arguments->profiled,
                                           "Show the time of every kernel in a step of this "
                                           "configuration (.toml), model, or benchmark")
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
                       fmt::format("Benchmarks: {} (default: all); or any model or configuration",
                                   join(bench_names(), ", ")));
  add_measurement(training, *arguments);
  add_overrides(training, arguments->overrides);
  training->add_flag("--json", arguments->json, "Print one JSON object per model");
  training->add_flag("--interactive", arguments->interactive,
                     "Answer each line \"go SECONDS\" of the input with one JSON line");
  training->footer(
      "Examples:\n"
      "  artel bench train mlp --threads 1 --json\n"
      "  artel bench train resnet20 --input 3x64x64 --batch 16 --set train.optimizer=adamw");
  training->callback([arguments] { bench_train(*arguments); });
  add_generation_bench(*command);
}

}  // namespace artel::cli
