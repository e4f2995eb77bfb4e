#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/plan_training.h"
#include "artel/cli/shared_arguments.h"
#include "artel/cli/subject.h"
#include "artel/data/fetch.h"
#include "artel/observe/table.h"
#include "artel/optim/optimizer.h"
#include "artel/plan/drawing.h"
#include "artel/plan/forecast/own_machine.h"
#include "artel/plan/machines/machine_file.h"
#include "artel/plan/measure.h"
#include "artel/plan/pipeline.h"
#include "artel/predict/batches.h"
#include "artel/train/parts/mesh_forecast.h"
#include "artel/train/strategies/tensor.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string subject, input;
  std::vector<std::string> overrides;
  std::string schedule = "auto";
  int stages = 0;    // 0: one for each worker, or two of `interleaved`
  int workers = 0;   // 0: the other way round
  int pipeline = 0;  // workers of the pipeline; 0 without --pipeline
  int lanes = 0;     // 0: those of the configuration, or two for each stage
  int mesh = 0;      // workers of the mesh; 0 without --mesh
  std::string svg;
  // Without a subject:
  std::vector<double> times = {1, 1, 1};
  double transfer = 0;
  int keep = 0;  // 0: any number
  // With a subject:
  std::vector<double> speeds;
  uint64_t memory = 0, bandwidth = 0;
  bool estimate = false;
  // For the forecast of a training:
  std::string on, goal = "fastest", output;
  double tokens = 0, samples = 0;
  bool measure = false, exact = false, as_given = false;
};

// Two lanes per stage for a schedule only; otherwise `lanes_for` returns the number for some
// workers.
plan::PipelineShape shape_of(const Arguments& arguments,
                             const std::function<int(int workers)>& lanes_for = {}) {
  const int each =
      arguments.schedule != "auto" && plan::schedule_kind(arguments.schedule).several_stages ? 2
                                                                                             : 1;
  const int stages = arguments.stages > 0    ? arguments.stages
                     : arguments.workers > 0 ? arguments.workers * each
                                             : 4;
  const int workers = arguments.workers > 0 ? arguments.workers
                      : stages % each == 0  ? stages / each
                                            : stages;
  require(stages % workers == 0, ErrorKind::invalid_argument,
          "--stages: got {} for {} workers, expected a multiple; try {}", stages, workers,
          std::max(1, stages / workers) * workers);
  const int lanes = arguments.lanes > 0 ? arguments.lanes
                    : lanes_for         ? lanes_for(workers)
                                        : 2 * stages;
  return {workers, stages, lanes};
}

void save_drawing(const Arguments& arguments, const plan::Schedule& schedule,
                  const plan::Simulation& simulation) {
  if (!arguments.svg.empty())
    write_file_atomically(arguments.svg, plan::schedule_svg(schedule, simulation));
}

// A schedule by itself, in units of time.
void show_schedule(const Arguments& arguments) {
  require(arguments.times.size() == 3, ErrorKind::invalid_argument,
          "--times: got {} numbers, expected three: forward, gradient of the input, gradient of "
          "the weights",
          arguments.times.size());
  const plan::PipelineShape shape = shape_of(arguments);
  plan::PipelineCosts costs = plan::PipelineCosts::equal(
      shape, {arguments.times[0], arguments.times[1], arguments.times[2]});
  costs.transfers.assign(shape.stages - 1, arguments.transfer);
  const auto fits = [&](const plan::Schedule& schedule) {
    const std::vector<int> kept = plan::most_kept(schedule);
    return arguments.keep == 0 || *std::max_element(kept.begin(), kept.end()) <= arguments.keep;
  };
  const plan::Schedule schedule = arguments.schedule == "auto"
                                      ? plan::fastest_schedule(shape, costs, fits)
                                      : plan::make_schedule(arguments.schedule, shape);
  const plan::Simulation simulation = plan::simulate(schedule, costs);
  println("{}: {}", schedule.name, plan::schedule_kind(schedule.name).help);
  fmt::print("{}\n{}\n", plan::schedule_table(schedule, simulation),
             plan::schedule_text(schedule, simulation));
  println("a step takes {:.4g}; workers idle for {:.1f} % of it", simulation.seconds,
          100 * simulation.bubble);
  save_drawing(arguments, schedule, simulation);
}

std::string in_milliseconds(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }

std::string stages_table(const plan::GraphCosts& costs, const plan::PipelinePlan& plan) {
  observe::Table table({"stage", "worker", "layers", "ops", "ms a lane", "forward", "gradient",
                        "of weights", "memory", "sends a lane"});
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const plan::PlannedStage& stage = plan.stages[i];
    const std::string &first = costs.layer(stage.first), &last = costs.layer(stage.last - 1);
    table.add({std::to_string(i), std::to_string(stage.worker),
               first == last ? first : first + " ... " + last,
               std::to_string(stage.last - stage.first), in_milliseconds(stage.times.total()),
               in_milliseconds(stage.times.forward), in_milliseconds(stage.times.input_gradient),
               in_milliseconds(stage.times.weight_gradient), format_bytes(stage.memory),
               format_bytes(stage.crossing.values)});
  }
  return table.text();
}

std::string comparison(const plan::GraphCosts& costs, plan::PipelineRequest request,
                       const plan::PipelinePlan& best) {
  request.schedule = best.schedule.name;
  observe::Table table(
      {"cuts by", "longest stage ms", "step ms", "idle %", "over cuts a lane", "most memory"});
  const auto add = [&](const std::string& name, const plan::PipelinePlan& plan) {
    table.add({name, in_milliseconds(plan.longest()), in_milliseconds(plan.simulation.seconds),
               fmt::format("{:.1f}", 100 * plan.simulation.bubble), format_bytes(plan.bytes()),
               format_bytes(plan.most_memory())});
  };
  const int stages = request.shape.stages;
  add("time", best);
  add("equally many layers",
      plan_with_cuts(costs, request, plan::equal_cuts(costs.layer_counts(), stages)));
  add("equally many parameters",
      plan_with_cuts(costs, request, plan::equal_cuts(costs.parameter_counts(), stages)));
  return table.text();
}

void check_lanes(int64_t batch_size, int lanes) {
  require(batch_size >= lanes, ErrorKind::invalid_argument,
          "train.batch_size: got {}, expected at least one sample for each of the {} lanes",
          batch_size, lanes);
}

int slots_of(const TrainConfig& train) {
  const auto optimizer = optim::make_optimizer(optim::optimizer_from_options(train.optimizer));
  return static_cast<int>(optimizer->slots().size());
}

int lanes_in_training(const Subject& subject, int workers) {
  return lanes_of_new_run(lane_request(subject.config, subject.model(), subject.x, workers)).lanes;
}

// Prints the forecast of each mesh of some workers.
void show_meshes(const Arguments& arguments) {
  const Subject subject = subject_of(arguments.subject, arguments.input, arguments.overrides);
  const RunConfig& config = subject.config;
  const int lanes =
      arguments.lanes > 0 ? arguments.lanes : lanes_in_training(subject, arguments.mesh);
  const int64_t batch_size = config.train.batch_size.of(arguments.mesh);
  check_lanes(batch_size, lanes);
  const int64_t samples = (batch_size + lanes - 1) / lanes;
  const KernelChoices choices = choices_of(config.train);
  MeshQuestion question = {
      .workers = arguments.mesh,
      .lanes = lanes,
      .threads = std::max(1, static_cast<int>(config.cluster.threads)),
      .shards = shards_of(config.cluster.strategy_options),
      .slots = slots_of(config.train),
      .schedule = arguments.schedule,
      .memory = static_cast<double>(arguments.memory),
      .mirrors = has_mirrors(config),
      .graph =
          [&](const ShardPart& part) {
            return training_graph(subject.model(), batch_of(subject.x, samples),
                                  batch_of(subject.y, samples), loss_by_name(config.train.loss), {},
                                  {}, part)
                .graph;
          },
      .seconds =
          [&](const Graph& graph) {
            // A shard alone cannot be measured: it waits for others.
            return arguments.estimate || shards_of(config.cluster.strategy_options) > 1
                       ? plan::own_node_seconds(graph, data::data_folder())
                       : plan::measured_node_seconds(graph, choices, data::data_folder() / "costs");
          }};
  if (arguments.bandwidth > 0)
    question.links.inside.bandwidth = question.links.between.bandwidth =
        static_cast<double>(arguments.bandwidth);
  const std::vector<MeshForecast> meshes = forecast_meshes(question);
  const std::optional<MeshForecast> best = best_mesh(meshes, question.memory);
  observe::Table table(
      {"data", "pipeline", "tensor", "sharding", "schedule", "step ms", "memory", "copies", ""});
  for (const MeshForecast& mesh : meshes) {
    const bool is_best = best && best->size == mesh.size && best->sharding == mesh.sharding;
    table.add({std::to_string(mesh.data), std::to_string(mesh.size.pipeline),
               std::to_string(mesh.size.tensor), mesh.sharding, mesh.schedule,
               in_milliseconds(mesh.seconds), format_bytes(mesh.memory),
               mesh.mirrors > 0 ? format_bytes(mesh.mirrors) : "",
               is_best                                    ? "best"
               : !mesh.fits(question.memory)              ? "does not fit"
               : !mesh.fits_with_mirrors(question.memory) ? "no room for copies"
                                                          : ""});
  }
  fmt::print("{}", table.text());
  if (best)
    println("best: {}: {}", to_string(*best), reasons_for(*best, meshes, question.memory));
  else
    println("nothing fits into {}; try {}", format_bytes(question.memory), suggest_fit(question));
  if (question.shards == 1) println("tensor groups are included with --set cluster.shards=N");
}

// The stages of a network.
void show_pipeline(const Arguments& arguments) {
  const Subject subject = subject_of(arguments.subject, arguments.input, arguments.overrides);
  const TrainConfig& train = subject.config.train;
  const plan::PipelineShape shape =
      shape_of(arguments, [&](int workers) { return lanes_in_training(subject, workers); });
  require(shape.lanes >= shape.workers, ErrorKind::invalid_argument,
          "lanes: got {} for a pipeline of {} workers, expected at least one for each; try "
          "--lanes {}",
          shape.lanes, shape.workers, 2 * shape.workers);
  const int64_t batch_size = train.batch_size.of(shape.workers);
  check_lanes(batch_size, shape.lanes);
  const int64_t samples = (batch_size + shape.lanes - 1) / shape.lanes;
  const Graph graph = training_graph(subject.model(), batch_of(subject.x, samples),
                                     batch_of(subject.y, samples), loss_by_name(train.loss))
                          .graph;
  const plan::GraphCosts costs(
      graph, arguments.estimate ? plan::own_node_seconds(graph, data::data_folder())
                                : plan::measured_node_seconds(graph, choices_of(train),
                                                              data::data_folder() / "costs"));
  const plan::PipelineRequest request = {.shape = shape,
                                         .schedule = arguments.schedule,
                                         .speeds = arguments.speeds,
                                         .memory = static_cast<double>(arguments.memory),
                                         .bandwidth = static_cast<double>(arguments.bandwidth),
                                         .slots = slots_of(train)};
  const plan::PipelinePlan plan = plan::plan_pipeline(costs, request);
  println("{} workers, schedule {}, {} lanes of {} samples", shape.workers, plan.schedule.name,
          shape.lanes, samples);
  fmt::print("{}\n{}\n{}\n", stages_table(costs, plan), comparison(costs, request, plan),
             plan::schedule_text(plan.schedule, plan.simulation));
  const double alone = costs.times(0, costs.nodes()).total() * shape.lanes;
  println("a step takes {} ms, {:.2f} of one worker's {}; workers idle for {:.1f} % of it",
          in_milliseconds(plan.simulation.seconds), plan.simulation.seconds / alone,
          in_milliseconds(alone), 100 * plan.simulation.bubble);
  save_drawing(arguments, plan.schedule, plan.simulation);
}

// Runs the kind of plan that the arguments select.
void run_plan(Arguments& arguments) {
  const bool alone = arguments.subject.empty();
  if (arguments.measure) return measure_machines(arguments.output);
  if (alone || arguments.pipeline > 0) {
    if (arguments.pipeline > 0) arguments.workers = arguments.pipeline;
    return alone ? show_schedule(arguments) : show_pipeline(arguments);
  }
  if (arguments.mesh > 0) return show_meshes(arguments);
  if (arguments.stages > 0 || arguments.schedule != "auto") return show_pipeline(arguments);
  show_training_plan({.subject = arguments.subject,
                      .input = arguments.input,
                      .overrides = arguments.overrides,
                      .on = arguments.on,
                      .goal = arguments.goal,
                      .as_given = arguments.as_given,
                      .exact = arguments.exact,
                      .svg = arguments.svg,
                      .tokens = arguments.tokens,
                      .samples = arguments.samples,
                      .workers = arguments.workers});
}

}  // namespace

void add_plan(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("plan",
                                             "Forecast memory, time, and price of a training, and "
                                             "find the best way to run it");
  command->add_option(
      "SUBJECT", arguments->subject,
      "Configuration (.toml) or model; without it, only a pipeline schedule is shown");
  const auto add_count = [&](const char* name, int& number, const char* help) {
    return command->add_option(name, number, help)->type_name("N")->check(CLI::Range(1, 1024));
  };
  const auto add_bytes = [&](const char* name, uint64_t& number, const char* help) {
    command->add_option(name, number, help)->type_name("BYTES")->transform(CLI::AsSizeValue(false));
  };
  command
      ->add_option("--on", arguments->on,
                   fmt::format("Machines to train on: a file (.toml), or one of {} (default: this "
                               "machine)",
                               join(plan::known_machines(), ", ")))
      ->type_name("MACHINES");
  command
      ->add_option("-n,--workers", arguments->workers,
                   "Number of workers (default: the best number); without SUBJECT, of the pipeline")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      ->add_option("--goal", arguments->goal,
                   "fastest, cheapest, fewest machines, or a time such as \"within 10 hours\"")
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "Tokens of the whole training, such as 300e9")
      ->type_name("N")
      ->check(at_least(1));
  command
      ->add_option("--samples", arguments->samples,
                   "Samples of the whole training, counting repeats")
      ->type_name("N")
      ->check(at_least(1));
  command->add_flag("--as-given", arguments->as_given,
                    "Forecast the mesh, sharding, strategy, and lanes of the configuration instead "
                    "of searching");
  command->add_flag(
      "--exact", arguments->exact,
      "Run the network's lanes on this machine and plan with their times; takes cores "
      "of other machines to be as fast");
  command->add_flag("--measure", arguments->measure,
                    "Measure this machine and write its machine file");
  command
      ->add_option("-o,--output", arguments->output,
                   "With --measure: file to write (default: machines.toml in $ARTEL_DATA)")
      ->type_name("FILE");
  add_count("--pipeline", arguments->pipeline,
            "Show the cuts and the schedule of a pipeline of N workers instead");
  add_count("--mesh", arguments->mesh, "Show all meshes of N workers and the best one instead");
  add_count("--stages", arguments->stages,
            "Stages of the network (default: one per worker, two with interleaved)");
  add_count("--lanes", arguments->lanes,
            "Lanes of the batch (default: as in training; without SUBJECT, two per stage)");
  command
      ->add_option(
          "--schedule", arguments->schedule,
          fmt::format("auto (the fastest that fits), {}", join(plan::schedule_names(), ", ")))
      ->capture_default_str();
  command->add_option("--svg", arguments->svg, "Write the drawing as SVG")->type_name("FILE");

  command->add_option("--input", arguments->input, "Shape of one sample, for a model by name")
      ->type_name("CxHxW");
  command->add_option("--speeds", arguments->speeds, "Relative speeds of the workers: 1,1,0.5")
      ->delimiter(',')
      ->type_name("S,S,...")
      ->check(at_least(1e-6));
  add_bytes("--memory", arguments->memory, "Memory of each worker, such as 2GiB");
  add_bytes("--bandwidth", arguments->bandwidth,
            "Bytes per second between workers, such as 125MB (default: messages take no time)");
  command->add_flag("--estimate", arguments->estimate,
                    "With --pipeline and --mesh: estimate times from the speeds of --measure, or a "
                    "processor model, instead of running the network");
  add_overrides(command, arguments->overrides);

  command
      ->add_option(
          "--times", arguments->times,
          "Without SUBJECT: times of a forward pass, of the input gradient, and of the weight "
          "gradient")
      ->delimiter(',')
      ->type_name("F,I,W")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--transfer", arguments->transfer,
                   "Without SUBJECT: time to send a lane to the next stage")
      ->type_name("T")
      ->check(at_least(0))
      ->capture_default_str();
  add_count("--keep", arguments->keep,
            "Without SUBJECT: number of activations that fit into memory, for auto");
  command->footer(
      "Examples:\n"
      "  artel plan examples/char_gpt.toml\n"
      "  artel plan resnet50 --on lab --samples 115e6 --goal \"within 10 hours\"\n"
      "  artel plan gpt3 --tokens 300e9 --on v100\n"
      "  artel plan resnet20 --exact\n"
      "  artel plan --measure -o machines.toml\n"
      "  artel plan --schedule 1f1b --stages 4 --lanes 8\n"
      "  artel plan --schedule interleaved --stages 8 --workers 4 --lanes 8 --svg plan.svg\n"
      "  artel plan examples/char_gpt.toml --pipeline 4\n"
      "  artel plan examples/char_gpt.toml --mesh 8 --memory 200MiB --set cluster.shards=2\n"
      "  artel plan vgg11_bn --pipeline 2 --lanes 8 --speeds 1,0.5 --memory 2GiB");
  command->callback([arguments] {
    require(arguments->mesh == 0 || !arguments->subject.empty(), ErrorKind::invalid_argument,
            "--mesh: got no network, expected a configuration or a model; try artel plan FILE "
            "--mesh {}",
            arguments->mesh);
    run_plan(*arguments);
  });
}

}  // namespace artel::cli
