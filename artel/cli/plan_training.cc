#include "artel/cli/plan_training.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/memory_limit.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cli/large_models.h"
#include "artel/data/fetch.h"
#include "artel/observe/table.h"
#include "artel/optim/optimizer.h"
#include "artel/plan/forecast/own_machine.h"
#include "artel/plan/forecast/picture.h"
#include "artel/plan/forecast/search.h"
#include "artel/plan/machines/units.h"
#include "artel/plan/measure.h"
#include "artel/plan/product_chains.h"
#include "artel/predict/batches.h"
#include "artel/train/name_prefixes.h"
#include "artel/train/step/memory_needs.h"
#include "artel/train/step/stepper.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/tensor.h"

namespace artel::cli {
namespace {

constexpr double kMonth = 365.25 / 12 * 86400;

// "175e9" for large numbers.
std::string short_count(double number) {
  if (number < 1e9) return format_count(std::llround(number));
  return fmt::format("{:.3g}e9", number / 1e9);
}

// "about 700 GB": two digits, as such sizes are quoted.
std::string rounded_bytes(double bytes) {
  if (bytes < 1e9) return format_bytes(bytes);
  const double unit = std::pow(10, std::floor(std::log10(bytes)) - 1);
  return fmt::format("about {:.0f} GB", std::round(bytes / unit) * unit / 1e9);
}

std::string range_of(const plan::TrainingForecast& f, double factor) {
  return fmt::format("{} to {}", plan::format_long_time(f.least_seconds * factor),
                     plan::format_long_time(f.most_seconds * factor));
}

std::string fraction(double part, double all) {
  return fmt::format("{:.0f} %", all > 0 ? 100 * part / all : 0);
}

// Prints the costs of training the network that are the same on any machine.
void print_work(const plan::TrainingTask& task, const plan::LaneCosts& two,
                const plan::MachineKind& kind) {
  const double parameters = two.parameters, flops_of_one = two.flops / 2;
  const std::string exact = parameters < 1e9
                                ? std::string()
                                : fmt::format(" ({})", format_count(std::llround(parameters)));
  println("{}: {} parameters{}, {} of weights in FP32", task.name, short_count(parameters), exact,
          rounded_bytes(4 * parameters));
  const double samples = static_cast<double>(task.batch);
  println(
      "a step: {}{}, {:.3g} floating-point operations", counted(task.batch, "sample"),
      task.tokens > 0 ? fmt::format(" ({} tokens)", format_count(task.batch * task.tokens)) : "",
      flops_of_one * samples);
  if (task.steps <= 0) return;
  const double flops = flops_of_one * samples * task.steps;
  println("the training: {} steps, {:.3g} operations", format_count(std::llround(task.steps)),
          flops);
  if (task.tokens == 0) return;
  const double usual = 6 * parameters * samples * static_cast<double>(task.tokens) * task.steps;
  println("  by the usual count, 6 x parameters x tokens: {:.3g} operations, {} on one {} at {}",
          usual, plan::format_long_time(usual / kind.flops),
          kind.devices > 1 ? "device" : "machine",
          plan::format_quantity(kind.flops, plan::Unit::flops));
}

// Chains of matrix products that another order would make much cheaper.
void print_chains(const plan::TrainingTask& task) {
  const int64_t samples = (task.batch + task.lanes - 1) / task.lanes;
  for (const plan::ProductChain& chain : plan::product_chains(task.graph(samples, {})))
    if (chain.best.flops < 0.9 * chain.flops)
      println("{}: the products of {} matrices take {:.3g} operations, {:.3g} in the order {}",
              chain.layer, chain.extents.size() - 1, chain.flops, chain.best.flops,
              chain.best.text);
}

void print_tables(const plan::TrainingForecast& f, const plan::TrainingTask& task) {
  const double step = f.seconds(), memory = f.memory.total();
  observe::Table use({"memory of a worker", "bytes", "share"});
  const auto add_memory = [&](const char* name, double bytes) {
    use.add({name, format_bytes(bytes), fraction(bytes, memory)});
  };
  add_memory("weights", f.memory.weights);
  add_memory("gradients", f.memory.gradients);
  add_memory("optimizer", f.memory.optimizer);
  add_memory("activations", f.memory.activations);
  add_memory("buffers", f.memory.buffers);
  use.add({"total", format_bytes(memory),
           fmt::format("{} of the device", fraction(memory, f.pool.kind.memory))});
  observe::Table time({"a step", "time", "share"});
  const auto add_time = [&](const char* name, double seconds) {
    if (seconds > 0) time.add({name, plan::format_long_time(seconds), fraction(seconds, step)});
  };
  add_time("compute", f.step.compute - f.step.again);
  add_time("recomputation", f.step.again);
  add_time("exchange", f.step.exchange);
  add_time("update", f.step.update);
  add_time("waiting", f.step.waiting);
  time.add({"total", plan::format_long_time(step), range_of(f, 1)});
  fmt::print("{}\n{}", use.text(), time.text());
  println("a machine sends {} a step, a worker {} inside its machine; limited by {}",
          format_bytes(f.network_bytes), format_bytes(f.inside_bytes), to_string(f.bottleneck));
  if (task.steps > 0) {
    const double price = f.price(task.steps);
    println("the whole training takes {} ({}){}", plan::format_long_time(step * task.steps),
            range_of(f, task.steps),
            price > 0 ? fmt::format(" and costs {}", format_count(std::llround(price))) : "");
  }
}

// Prints the command or the keys of a configuration that train as planned.
void print_keys(const plan::TrainingForecast& f, const plan::TrainingTask& task,
                const std::string& subject) {
  const plan::Combination& c = f.combination;
  const int64_t lanes = std::max<int64_t>(c.data(), (task.batch + c.samples - 1) / c.samples);
  std::vector<std::string> keys = {fmt::format("cluster.workers={}", c.workers),
                                   fmt::format("cluster.lanes={}", lanes),
                                   fmt::format("train.batch_size={}", task.batch)};
  if (c.pipeline > 1) {
    keys.push_back(fmt::format("cluster.pipeline={}", c.pipeline));
    keys.push_back("cluster.schedule=" + c.schedule);
  }
  if (c.tensor > 1) {
    keys.push_back(fmt::format("cluster.tensor={}", c.tensor));
    keys.push_back(fmt::format("cluster.shards={}", c.tensor));
  }
  if (c.sharding != "none") keys.push_back("cluster.sharding=" + c.sharding);
  if (c.strategy == "ps") {
    keys.push_back("cluster.strategy=ps");
    keys.push_back(fmt::format("cluster.servers={}", f.pool.machines));
  }
  if (c.recompute) {
    const double limit = std::ceil(f.memory.activations / (1 << 20));
    keys.push_back(fmt::format("train.memory_limit={:.0f}MiB", limit));
  }
  if (subject.ends_with(".toml"))
    println("to train like this: artel train {} --set {}", subject, join(keys, " --set "));
  else
    println("keys to train like this: --set {}", join(keys, " --set "));
}

void print_ranking(const std::vector<plan::TrainingForecast>& best,
                   const plan::TrainingTask& task) {
  std::vector<std::string> headers = {"workers",  "machines", "mesh", "sharding", "recompute",
                                      "strategy", "batch",    "lane", "step",     "memory"};
  if (task.steps > 0) headers.emplace_back("training");
  const bool priced = task.steps > 0 && best[0].pool.price > 0;
  if (priced) headers.emplace_back("price");
  headers.emplace_back("why");
  observe::Table table(headers);
  for (const plan::TrainingForecast& f : best) {
    const plan::Combination& c = f.combination;
    std::vector<std::string> row = {format_count(c.workers),
                                    format_count(f.pool.machines),
                                    plan::mesh_text(c) + (c.pipeline > 1 ? ", " + c.schedule : ""),
                                    c.sharding,
                                    c.recompute ? "yes" : "no",
                                    c.strategy,
                                    std::to_string((task.batch + c.data() - 1) / c.data()),
                                    std::to_string(c.samples),
                                    plan::format_long_time(f.seconds()),
                                    format_bytes(f.memory.total())};
    if (task.steps > 0) row.push_back(plan::format_long_time(f.seconds() * task.steps));
    if (priced) row.push_back(format_count(std::llround(f.price(task.steps))));
    row.push_back(&f == best.data() ? fmt::format("best, {}", plan::reason_for(f, f))
                                    : plan::reason_for(f, best[0]));
    table.add(std::move(row));
  }
  fmt::print("{}", table.text());
}

Graph lane_graph(const Subject& subject, int64_t samples, const ShardPart& part = {},
                 int lanes_together = 1) {
  const TrainConfig& train = subject.config.train;
  const auto trained = [&](const std::string& name) {
    return !begins_with_any(name, train.freeze);
  };
  return training_graph(subject.model(), batch_of(subject.x, samples), batch_of(subject.y, samples),
                        loss_by_name(train.loss), trained, {}, part, lanes_together)
      .graph;
}

double parameter_count(const Graph& graph) {
  double count = 0;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    count += static_cast<double>(graph.type(id).shape.elements());
  return count;
}

// Runs the network's lanes on this machine and plans with the measured times.
void measure_lanes(plan::TrainingTask& task, const TrainConfig& train) {
  constexpr double kCopies = 2;  // weights and gradients
  const double count = parameter_count(task.graph(2, {}));
  const double bytes = 4 * kCopies * count;
  const auto limit = static_cast<double>(memory_limit_bytes());
  require(bytes < limit, ErrorKind::memory,
          "--exact: {} has {} parameters, which need at least {} here, and this machine has {}; "
          "leave --exact out",
          task.name, short_count(count), format_bytes(bytes), format_bytes(limit));
  task.measure = [choices = choices_of(train)](const Graph& graph) {
    return plan::measured_node_seconds(graph, choices, data::data_folder() / "costs");
  };
}

// Memory by the plan of a lane's program. Compiles each lane once.
std::function<plan::MemoryUse(const plan::WholeWorker&)> memory_of(const Subject& subject,
                                                                   int slots) {
  using Key = std::tuple<int64_t, int, int>;  // samples, threads of a lane, lanes
  const auto programs = std::make_shared<std::map<Key, std::shared_ptr<const Program>>>();
  return [=](const plan::WholeWorker& worker) {
    const int lanes = worker.lanes * worker.copies;
    const auto compiled = [&](int threads) -> const Program& {
      std::shared_ptr<const Program>& program = (*programs)[{worker.samples, threads, lanes}];
      if (!program) {
        KernelChoices choices = choices_of(subject.config.train);
        program = std::make_shared<Program>(lane_graph(subject, worker.samples, {}, lanes),
                                            CompileOptions{.threads = threads}, choices);
      }
      return *program;
    };
    const double sums = Stepper::sums_per_lane(compiled(1));
    const bool alone = Stepper::side_by_side(worker.lanes, worker.threads, sums) == 1;
    const Program& program = compiled(alone ? worker.threads : 1);
    const MemoryNeeds needs = memory_needs(program, worker.lanes, worker.threads, slots,
                                           worker.copies, {worker.sharding});
    const auto bytes = [](size_t count) { return static_cast<double>(count); };
    return plan::MemoryUse{.weights = bytes(needs.weights()),
                           .gradients = bytes(needs.gradients()),
                           .optimizer = bytes(needs.optimizer),
                           .activations = bytes(needs.activations()),
                           .buffers = worker.shares_memory ? bytes(needs.others_gradients) : 0};
  };
}

std::string in_machines(const plan::TrainingForecast& f) {
  return fmt::format("{} ({} workers, {}; {} each)", counted(f.pool.machines, "machine"),
                     format_count(f.combination.workers), to_string(f.combination),
                     format_bytes(f.memory.total()));
}

// Prints the number of machines that train the network in a month, with larger batches if more
// machines alone do not help.
void print_month(const plan::TrainingTask& task, const plan::Machines& machines,
                 const plan::TrainingForecast& best) {
  constexpr int kMostFactor = 16;
  if (best.seconds() * task.steps <= kMonth) return;
  for (int factor = 1; factor <= kMostFactor; factor *= 2) {
    plan::TrainingTask larger = task;
    larger.batch *= factor;
    larger.steps /= factor;
    plan::TrainingForecaster forecaster(larger, machines);
    const auto enough = plan::with_fewest_workers(forecaster, {.within = kMonth});
    if (!enough) continue;
    println("in a month: {}{}, {} for the whole training", in_machines(*enough),
            factor > 1 ? fmt::format(" with train.batch_size = {}", larger.batch) : "",
            plan::format_long_time(enough->seconds() * larger.steps));
    return;
  }
  println("no number of these machines trains it in a month");
}

void print_nothing(plan::TrainingForecaster& forecaster, const plan::Goal& goal,
                   const plan::SearchResult& result) {
  const plan::TrainingForecast& least = result.smallest;
  const bool fits = least.fits();
  if (fits)
    println("no plan meets the goal: none of {} combinations trains it {}",
            format_count(static_cast<int64_t>(result.tried)), to_string(goal));
  else
    println("nothing fits: each of {} needs at least {} ({}), and has {}",
            counted(least.combination.workers, "worker"), format_bytes(least.memory.total()),
            to_string(least.combination), format_bytes(least.pool.kind.memory));
  if (const auto enough = plan::with_fewest_workers(forecaster, goal))
    println("enough: {}", in_machines(*enough));
  else
    println("no number of these machines is enough; try {}",
            fits ? "a larger train.batch_size" : "machines with more memory");
}

// The forecast of the configuration's own mesh, sharding, strategy, and lanes.
plan::SearchResult given_plan(plan::TrainingForecaster& forecaster, const Subject& subject,
                              int64_t workers) {
  const plan::TrainingTask& task = forecaster.task();
  const ClusterConfig& cluster = subject.config.cluster;
  const auto& pipeline = cluster.strategy_options.of<PipelineOptions>();
  const auto tensor = cluster.strategy_options.of<TensorOptions>().tensor;
  plan::Combination given = {.workers = std::max<int64_t>(1, workers),
                             .pipeline = static_cast<int>(pipeline.pipeline),
                             .tensor = static_cast<int>(tensor),
                             .strategy = cluster.servers > 0 ? "ps" : "auto",
                             .samples = (task.batch + task.lanes - 1) / task.lanes};
  if (pipeline.schedule.starts_with("zero_bubble")) given.schedule = "zero_bubble";
  if (given.data() > 1) given.sharding = cluster.strategy_options.of<ShardingOptions>().sharding;
  const auto forecast = forecaster.forecast(given);
  require(forecast.has_value(), ErrorKind::invalid_argument,
          "--as-given: got {} workers with {}, expected a possible combination; try another number "
          "of --workers",
          given.workers, to_string(given));
  return {.best = {*forecast}, .smallest = *forecast, .tried = 1, .fitting = forecast->fits()};
}

}  // namespace

KernelChoices choices_of(const TrainConfig& train) {
  return {.exact_convolutions = train.exact_convolutions, .bf16 = train.precision == "bf16"};
}

Subject planned_subject(const std::string& name, const std::string& input,
                        const std::vector<std::string>& overrides) {
  const LargeModel* const large = find_large_model(name);
  if (large == nullptr) return subject_of(name, input, overrides);
  std::vector<std::string> all = large->overrides;
  all.insert(all.end(), overrides.begin(), overrides.end());
  return *subject_of_model(large->base, input.empty() ? large->input : input, all);
}

plan::TrainingTask training_task(const Subject& subject, const std::string& name, double tokens,
                                 double samples, int64_t workers) {
  const TrainConfig& train = subject.config.train;
  const auto optimizer = optim::make_optimizer(optim::optimizer_from_options(train.optimizer));
  const int count = static_cast<int>(std::max<int64_t>(1, workers));
  const bool is_text = subject.x.dtype == DType::i32 && subject.x.shape.rank() == 1;
  plan::TrainingTask task = {.name = name,
                             .batch = train.batch_size.of(count),
                             .slots = static_cast<int>(optimizer->slots().size()),
                             .tokens = is_text ? subject.x.shape.elements() : 0,
                             .graph = [subject](int64_t lane, const ShardPart& part) {
                               return lane_graph(subject, lane, part);
                             }};
  task.memory = memory_of(subject, task.slots);
  task.lanes =
      lanes_of_new_run(lane_request(subject.config, subject.model(), subject.x, count)).lanes;
  require(tokens == 0 || is_text, ErrorKind::invalid_argument,
          "--tokens: {} does not read text; try --samples", name);
  const auto batch = static_cast<double>(task.batch);
  if (tokens > 0)
    task.steps = tokens / (batch * static_cast<double>(task.tokens));
  else if (samples > 0)
    task.steps = samples / batch;
  else if (train.steps > 0)
    task.steps = static_cast<double>(train.steps);
  else if (subject.samples > 0)
    task.steps =
        static_cast<double>(train.epochs) * std::ceil(static_cast<double>(subject.samples) / batch);
  return task;
}

std::string own_step_text(const Subject& subject, int64_t samples, int lanes) {
  const auto machines = plan::own_machine(data::data_folder());
  if (!machines) return "";
  plan::TrainingTask task = training_task(subject, subject.config.model.name, 0, 0, 1);
  task.batch = samples;
  task.lanes = lanes;
  plan::TrainingForecaster forecaster(task, *machines);
  const auto f = forecaster.forecast({.samples = (samples + lanes - 1) / lanes});
  if (!f) return "";  // lanes too small for a batch norm
  return fmt::format("about {} a step on this machine ({})", plan::format_long_time(f->seconds()),
                     range_of(*f, 1));
}

void show_training_plan(const TrainingPlanRequest& request) {
  const plan::Goal goal = plan::parse_goal(request.goal);
  const Subject subject = planned_subject(request.subject, request.input, request.overrides);
  plan::TrainingTask task =
      training_task(subject, request.subject, request.tokens, request.samples, request.workers);
  if (request.exact) measure_lanes(task, subject.config.train);
  require(goal.within <= 0 || task.steps > 0, ErrorKind::invalid_argument,
          "--goal \"{}\": the length of the training is unknown; try --tokens or --samples",
          request.goal);
  const plan::Machines machines = planned_machines(request.on);
  plan::TrainingForecaster forecaster(task, machines);
  plan::LaneCostTable costs(task);
  const plan::MachineKind kind = plan::pool_of(machines, 1).kind;
  print_work(task, *costs.find(2, 1, kind), kind);
  print_chains(task);
  println("on {}: {}", machines.name, machines.about);
  tell_missing_machines(machines, request.workers);
  const plan::SearchResult result = request.as_given
                                        ? given_plan(forecaster, subject, request.workers)
                                        : plan::search(forecaster, goal, request.workers);
  if (result.best.empty()) return print_nothing(forecaster, goal, result);
  if (request.as_given)
    println("as configured, which {}:", result.fitting > 0 ? "fits" : "does not fit");
  else
    println("{} of {} combinations fit; the best for \"{}\":",
            format_count(static_cast<int64_t>(result.fitting)),
            format_count(static_cast<int64_t>(result.tried)), to_string(goal));
  print_ranking(result.best, task);
  fmt::print("\n");
  print_tables(result.best[0], task);
  print_keys(result.best[0], task, request.subject);
  if (task.steps > 0) print_month(task, machines, result.best[0]);
  if (!request.svg.empty())
    write_file_atomically(
        request.svg,
        plan::forecast_svg(fmt::format("{} on {}", task.name, machines.name), result.best));
}

}  // namespace artel::cli
