#include <CLI/CLI.hpp>
#include <csignal>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/cli/commands.h"
#include "artel/cli/run_options.h"
#include "artel/cli/workers.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/servers_inside.h"
#include "artel/observe/trace.h"
#include "artel/run/interrupt.h"
#include "artel/run/report.h"
#include "artel/run/run_folder.h"
#include "artel/run/setup.h"
#include "artel/run/train_linear.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string file, out, name;
  std::string join, token, interface, trace;
  int rank = -1;
  bool resume = false;
  std::vector<std::string> overrides;
};

std::string resume_command(const Arguments& arguments, const RunFolder& folder) {
  std::string line = fmt::format("artel train {} --out {} --resume", shell_word(arguments.file),
                                 shell_word(folder.path().string()));
  for (const std::string& text : arguments.overrides) line += " --set " + shell_word(text);
  return line;
}

// The step that a resumed run continues after; 0 if there is nothing to continue.
int64_t step_to_resume(const RunFolder& folder) {
  if (!std::filesystem::is_directory(folder.checkpoints())) return 0;
  const auto newest = checkpoint::load_newest(folder.checkpoints());
  return newest ? newest->checkpoint.step : 0;
}

FitOptions fit_options(const RunConfig& config, const RunData& data,
                       const std::filesystem::path& checkpoints, const Arguments& arguments) {
  const TrainConfig& train = config.train;
  return {.batch_size = train.batch_size,
          .keep_last_batch = train.keep_last_batch,
          .epochs = train.steps > 0 ? 0 : train.epochs,
          .steps = train.steps,
          .augment = data.augment,
          .loader_threads = static_cast<int>(config.data.threads),
          .validation = data.split.test,
          .target_accuracy = train.target_accuracy,
          .patience = train.patience,
          .max_seconds = train.max_seconds,
          .checkpoints = checkpoints,
          .save_every = train.save_every,
          .keep_last = static_cast<int>(train.keep_last),
          .resume = arguments.resume,
          .timeline = !arguments.trace.empty()};
}

void save_trace(const std::vector<TimelineSpan>& spans, const std::filesystem::path& path) {
  observe::Trace trace;
  for (const TimelineSpan& span : spans) {
    trace.name_process(span.worker, fmt::format("worker {}", span.worker));
    trace.name_thread(span.worker, span.thread,
                      span.thread == Timeline::kMain ? "steps"
                      : span.thread == Timeline::kWire
                          ? "wire"
                          : fmt::format("lane {}", span.thread - Timeline::kFirstLane));
    trace.add({span.name, span.category, span.worker, span.thread, span.begin, span.seconds});
  }
  trace.save(path);
}

int64_t count_parameters(Trainer& trainer) {
  int64_t count = 0;
  for (const ParameterEntry& entry : trainer.parameters().entries())
    if (entry.trained) count += entry.shape.elements();
  return count;
}

// How this process joins the run; nothing if it is alone.
std::optional<comm::GroupOptions> place_of(const Arguments& arguments, const RunConfig& config) {
  std::optional<comm::GroupOptions> place = launched_group();
  const int servers = server_count(config);
  if (!arguments.join.empty())
    place = {.transport = "gloo",
             .rank = arguments.rank,
             .size = static_cast<int>(config.cluster.workers) + servers,
             .address = arguments.join,
             .token = arguments.token,
             .interface = arguments.interface};
  if (!place) return {};
  const std::string& wanted = config.cluster.transport;
  require(wanted == "auto" || wanted == place->transport, ErrorKind::invalid_argument,
          "cluster.transport: got \"{}\", but these workers were started to join by {}; try "
          "\"auto\"",
          wanted, place->transport);
  place->servers = servers;
  place->outlives_workers = outlives_workers(config);
  return place;
}

// What the other workers do: the same training, silently. Worker 0 writes and reports.
void follow(const Arguments& arguments, const RunConfig& config, Cluster& cluster) {
  const RunData data = open_data(config);
  Trainer trainer(cluster, make_model(config.model, data.layout()), trainer_options(config));
  trainer.build(sample_type(data.layout(), data.augment));
  const StopOnSignal stop(trainer);
  trainer.fit(data.split.train, fit_options(config, data, {}, arguments));
}

// What worker 0 does: it trains with the others, and writes and reports. Says whether a signal has
// stopped it.
bool lead(const Arguments& arguments, const RunConfig& config, Cluster& cluster) {
  const RunFolder folder =
      choose_folder({arguments.file, arguments.out, arguments.name, arguments.resume});
  const RunData data = open_data(config);
  const data::SampleLayout& layout = data.layout();
  const bool has_classes = layout.target_kind == data::TargetKind::classes;

  Trainer trainer(cluster, make_model(config.model, layout), trainer_options(config));
  trainer.build(sample_type(layout, data.augment));
  load_configured_weights(trainer, config.model);

  const int64_t resumed_step = arguments.resume ? step_to_resume(folder) : 0;
  const bool is_new = std::filesystem::create_directories(folder.path());
  write_file_atomically(folder.config(), to_toml(config));
  folder.save_layout(layout);

  const StopOnSignal stop(trainer);
  RunReport report(folder, resumed_step, has_classes);
  report.note(fmt::format("{}: {} training and {} test samples {}, {} parameters", config.data.set,
                          format_count(data.split.train->size()),
                          format_count(data.split.test->size()), to_string(layout.input),
                          format_count(count_parameters(trainer))));
  if (cluster.size() > 1)
    for (const std::string& member : cluster.members()) report.note(member);
  if (arguments.resume) report.note(folder.resume_note("step", resumed_step));

  FitOptions fit = fit_options(config, data, folder.checkpoints(), arguments);
  fit.resume = resumed_step > 0;
  bool begun = false;
  fit.after_step.push_back([&](const TrainingState& state) {
    begun = true;
    report.after_step(state);
    return true;
  });
  fit.after_epoch.push_back([&](const TrainingState& state) {
    report.after_epoch(state);
    return true;
  });
  FitResult result;
  try {
    result = trainer.fit(data.split.train, fit);
  } catch (...) {
    if (is_new && !begun) std::filesystem::remove_all(folder.path());
    throw;
  }
  write_file_atomically(folder.plan(), to_string(trainer.choices()));
  report.finish(result, count_parameters(trainer));
  if (!arguments.trace.empty()) save_trace(result.timeline, arguments.trace);
  if (StopOnSignal::received() == 0) return false;
  println("stopped; to go on: {}", resume_command(arguments, folder));
  return true;
}

void train_sparse_model(const Arguments& arguments, const RunConfig& config, Cluster& cluster) {
  if (cluster.rank() > 0) return train_linear(config, cluster, nullptr);
  const RunFolder folder =
      choose_folder({arguments.file, arguments.out, arguments.name, arguments.resume});
  train_linear(config, cluster, &folder, arguments.resume);
}

void train(const Arguments& arguments) {
  const RunConfig config = read_config(arguments.file, arguments.overrides);
  trainer_options(config);  // refuses what is wrong before workers are started
  const int servers = server_count(config);
  const bool linear = config.cluster.strategy == "ddpg";
  const std::optional<comm::GroupOptions> place = place_of(arguments, config);
  if ((config.cluster.workers > 1 || servers > 0) && !place) {
    // Fetched once, before all workers want it.
    if (linear)
      sparse_files(config);
    else
      open_data(config);
    const int code = launch_here({.workers = static_cast<int>(config.cluster.workers),
                                  .servers = servers,
                                  .outlives_workers = outlives_workers(config),
                                  .servers_inside = config.cluster.servers_inside,
                                  .transport = config.cluster.transport});
    if (code != 0) throw CLI::RuntimeError(code);
    return;
  }
  std::optional<ServersInside> inside;
  if (place && config.cluster.servers_inside) inside.emplace(*place);
  Cluster cluster = place ? Cluster(*place) : Cluster();
  if (cluster.is_server()) {
    // Who stops the run stops the workers; servers end when these have left.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    return cluster.serve();
  }
  bool stopped = false;
  cluster.attempt([&] {
    if (linear)
      train_sparse_model(arguments, config, cluster);
    else if (cluster.rank() > 0)
      follow(arguments, config, cluster);
    else
      stopped = lead(arguments, config, cluster);
  });
  if (stopped) throw CLI::RuntimeError(128 + StopOnSignal::received());
}

}  // namespace

void add_train(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a network as a TOML file describes");
  command->add_option("FILE", arguments->file, "Configuration (TOML)")->required();
  command->add_option("--out", arguments->out, "Folder of the run (default: runs/NAME)")
      ->type_name("DIR");
  command->add_option("--name", arguments->name, "Name of the run (default: that of FILE)")
      ->type_name("NAME");
  command->add_flag("--resume", arguments->resume, "Go on from the newest checkpoint of the run");
  command->add_option("--join", arguments->join, "Meet the other machines there (worker 0 listens)")
      ->type_name("HOST:PORT");
  command->add_option("--rank", arguments->rank,
                      "With --join: which worker this is, from 0 (default: as they come)");
  command->add_option("--token", arguments->token, "With --join: a secret that all workers give");
  command->add_option("--interface", arguments->interface, "With --join: network interface to use");
  command
      ->add_option("--trace", arguments->trace,
                   "Write what each worker did when, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  add_overrides(command, arguments->overrides);
  const auto shorthand = [&](const std::string& flags, const std::string& key,
                             const std::string& help) {
    command
        ->add_option_function<std::string>(
            flags,
            [arguments, key](const std::string& value) {
              arguments->overrides.push_back(key + "=" + value);
            },
            help + ": short for --set " + key + "=N")
        ->type_name("N");
  };
  shorthand("-n,--workers", "cluster.workers", "Number of workers");
  shorthand("--servers", "cluster.servers", "Number of parameter servers beside them");
  shorthand("--threads", "cluster.threads", "Cores of each worker");
  shorthand("--lanes", "cluster.lanes", "Parts of a batch");
  command->footer(
      "The folder of the run gets the complete configuration, metrics (JSON lines and TensorBoard\n"
      "events), curves.svg and checkpoints. Ctrl-C stops after the current step, saves and says "
      "how\n"
      "to go on; a second one stops at once. docs/configuration.md lists all keys.\n\n"
      "Examples:\n"
      "  artel train examples/fashion_mnist.toml\n"
      "  artel train examples/mnist.toml --out runs/fast --set train.optimizer.lr=0.2\n"
      "  artel train examples/mnist.toml --out runs/fast --resume --set train.epochs=20\n"
      "  artel train examples/mnist.toml -n 4\n"
      "  mpirun -n 4 artel train examples/mnist.toml");
  command->callback([arguments] { train(*arguments); });
}

}  // namespace artel::cli
