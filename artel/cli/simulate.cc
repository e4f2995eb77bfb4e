#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/plan_training.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"
#include "artel/plan/forecast/training_forecast.h"
#include "artel/plan/machines/machine_file.h"
#include "artel/plan/machines/units.h"
#include "artel/plan/network/failures.h"
#include "artel/plan/network/step_simulation.h"

namespace artel::cli {
namespace {

// About 20 seconds of SimGrid; beyond that, closed forms.
constexpr double kMostMessages = 5e6;
constexpr double kPatience = 300;

struct Arguments {
  std::string subject, input, on, svg;
  std::vector<std::string> overrides,
      strategies = {"exact", "ring", "tree", "halving", "hierarchical", "ps"};
  int workers = 8;
  int servers = 0;  // 0: one on each machine
  int local_steps = 1, delay = 0;
  std::string failures;  // mean time between failures of a machine; empty for none
  std::string trace;
  std::string scaling = "weak";
  bool closed_form = false;
};

// Steps of a network on numbers of workers.
class Simulation {
 public:
  explicit Simulation(const Arguments& arguments)
      : a_(arguments),
        task_(training_task(planned_subject(a_.subject, a_.input, a_.overrides), a_.subject, 0, 0,
                            1)),
        machines_(planned_machines(a_.on)) {
    require(a_.scaling == "weak" || a_.workers <= task_.batch, ErrorKind::invalid_argument,
            "--scaling strong: got {} workers for a batch of {} samples, expected at least one "
            "sample each; try --set train.batch_size={}",
            format_count(a_.workers), format_count(task_.batch), a_.workers);
    plan::LaneCostTable table(task_);
    const plan::MachineKind kind = plan::pool_of(machines_, 1).kind;
    const plan::LaneCosts& lane = *table.find(2, 1, kind);
    bytes_ = lane.costs.memory(0, lane.costs.nodes()).trained;
    plan::TrainingForecaster forecaster(task_, machines_);
    const int64_t samples = (task_.batch + task_.lanes - 1) / task_.lanes;
    const auto forecast = forecaster.forecast({.samples = samples});
    require(forecast.has_value(), ErrorKind::invalid_argument,
            "train.batch_size: got {}, too few samples for {} lanes with batch norm", task_.batch,
            task_.lanes);
    alone_ = forecast->step.compute;
    simulates_ = !a_.closed_form && plan::can_simulate_messages();
  }

  bool simulates() const { return simulates_; }
  double alone() const { return alone_; }
  double bytes() const { return bytes_; }
  const plan::TrainingTask& task() const { return task_; }
  const plan::Machines& machines() const { return machines_; }

  plan::StepResult step(const std::string& strategy, int workers,
                        const std::string& trace = "") const {
    const plan::Pool pool = plan::pool_of(machines_, workers);
    const int servers = a_.servers > 0 ? a_.servers : static_cast<int>(pool.machines);
    // Emulated machines share their cores.
    const double slower = plan::pool_of(machines_, 1).kind.flops / pool.kind.flops;
    const double part = a_.scaling == "strong" ? 1.0 / workers : 1;
    const int lanes = a_.scaling == "strong" ? task_.lanes : task_.lanes * workers;
    const plan::SimulatedStep step = {
        .exchange = plan::make_exchange(strategy, pool, servers, bytes_, lanes),
        .compute = alone_ * slower * part,
        .local_steps = strategy == "ps" ? 1 : a_.local_steps,
        .delay = strategy == "ps" ? a_.delay : 0};
    const bool few = plan::message_count(step.exchange) <= kMostMessages && step.delay == 0;
    return simulates_ && few && workers > 1 ? plan::simulate_messages(pool, step, kPatience, trace)
                                            : plan::closed_form(pool, step);
  }

  // Samples per second, compared with one worker.
  double speedup(const plan::StepResult& step, int workers) const {
    return (a_.scaling == "strong" ? 1 : workers) * alone_ / step.seconds;
  }

 private:
  const Arguments& a_;
  plan::TrainingTask task_;
  plan::Machines machines_;
  double bytes_ = 0, alone_ = 0;
  bool simulates_ = false;
};

std::vector<int> worker_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

std::string whole_percent(double share) { return fmt::format("{:.0f}", 100 * share); }

void print_steps(const Simulation& simulation, const Arguments& arguments) {
  observe::Table table({"strategy", "step", "exchange", "waiting %", "busiest link %", "speedup",
                        "efficiency %", "messages"});
  for (const std::string& strategy : arguments.strategies) {
    const plan::StepResult step = simulation.step(strategy, arguments.workers);
    const double speedup = simulation.speedup(step, arguments.workers);
    table.add({strategy, plan::format_long_time(step.seconds),
               plan::format_long_time(step.exchange), whole_percent(step.waiting),
               whole_percent(step.utilisation), fmt::format("{:.4g}", speedup),
               whole_percent(speedup / arguments.workers),
               step.simulated ? "simulated" : "closed form"});
  }
  fmt::print("{}", table.text());
}

// Efficiency by workers: dots are simulated message by message, lines without dots are closed
// forms.
void save_curves(const Simulation& simulation, const Arguments& arguments) {
  observe::Plot plot = {.title = fmt::format("{} on {}: {} scaling", simulation.task().name,
                                             simulation.machines().name, arguments.scaling),
                        .x_label = "workers",
                        .y_label = "speedup",
                        .series = {},
                        .log_x = true,
                        .log_y = true};
  for (const std::string& strategy : arguments.strategies) {
    observe::Series simulated = {.name = strategy, .points = {}, .markers = true};
    observe::Series forms = {.name = strategy + " (closed form)", .points = {}};
    for (const int workers : worker_counts(arguments.workers)) {
      const plan::StepResult step = simulation.step(strategy, workers);
      const std::pair<double, double> point = {workers, simulation.speedup(step, workers)};
      (step.simulated || workers == 1 ? simulated : forms).points.push_back(point);
    }
    if (!forms.points.empty() && !simulated.points.empty())
      forms.points.insert(forms.points.begin(), simulated.points.back());
    if (simulation.simulates()) plot.series.push_back(std::move(simulated));
    if (!forms.points.empty()) plot.series.push_back(std::move(forms));
  }
  write_file_atomically(arguments.svg, observe::to_svg(plot));
}

// Parameter servers: the number of workers that they can serve.
void print_saturation(const Simulation& simulation, const Arguments& arguments) {
  constexpr int kMost = 10'000;
  if (std::ranges::count(arguments.strategies, "ps") == 0 || arguments.scaling == "strong") return;
  for (int servers = 1; servers <= 64; servers *= 4) {
    const int workers = plan::saturating_workers(simulation.machines(), servers, simulation.bytes(),
                                                 simulation.alone(), kMost);
    println("ps: {} {}", counted(servers, "server"),
            workers > 0 ? fmt::format("saturate at {} workers", format_count(workers))
                        : fmt::format("serve {} workers", format_count(kMost)));
  }
}

void print_failures(const Simulation& simulation, const Arguments& arguments) {
  if (arguments.failures.empty()) return;
  const double between = plan::parse_quantity(arguments.failures, plan::Unit::seconds);
  require(between > 0, ErrorKind::invalid_argument, "--failures: got \"{}\", expected more than 0",
          arguments.failures);
  const plan::Pool pool = plan::pool_of(simulation.machines(), arguments.workers);
  const plan::FailureCost cost = plan::failure_cost(
      {.machines = static_cast<double>(pool.machines),
       .between_failures = between,
       .step = simulation.step(arguments.strategies[0], arguments.workers).seconds});
  println(
      "failures: {:.3g} a day on {}; elastic training loses {:.3g} % of the time, restarts from "
      "checkpoints every {} lose {:.3g} %",
      cost.per_day, counted(pool.machines, "machine"), 100 * cost.elastic,
      plan::format_long_time(cost.interval), 100 * cost.restarts);
}

// Writes a timeline of the first strategy.
void save_trace(const Simulation& simulation, const Arguments& arguments) {
  constexpr int kMostTraced = 64;
  if (arguments.trace.empty()) return;
  require(simulation.simulates(), ErrorKind::unsupported,
          "--trace: no messages are simulated; leave --closed-form out, and build with SimGrid "
          "(libsimgrid-dev)");
  require(arguments.workers > 1 && arguments.workers <= kMostTraced, ErrorKind::invalid_argument,
          "--trace: got {} workers, expected 2 to {}", format_count(arguments.workers),
          kMostTraced);
  const std::string& strategy = arguments.strategies[0];
  require(strategy != "ps" || arguments.delay == 0, ErrorKind::invalid_argument,
          "--trace: ps with a delay is computed without messages; leave --delay out");
  simulation.step(strategy, arguments.workers, std::filesystem::absolute(arguments.trace).string());
  println("{}: the messages of {}; open it in Perfetto (ui.perfetto.dev)", arguments.trace,
          strategy);
}

void simulate(const Arguments& arguments) {
  const Simulation simulation(arguments);
  if (!simulation.simulates() && !arguments.closed_form)
    println("SimGrid (libsimgrid-dev) is missing; all times are closed forms");
  println("{} on {}: {} of gradients, {} of computing alone, {} workers, {} scaling",
          simulation.task().name, simulation.machines().name, format_bytes(simulation.bytes()),
          plan::format_long_time(simulation.alone()), format_count(arguments.workers),
          arguments.scaling);
  tell_missing_machines(simulation.machines(), arguments.workers);
  print_steps(simulation, arguments);
  print_saturation(simulation, arguments);
  print_failures(simulation, arguments);
  save_trace(simulation, arguments);
  if (!arguments.svg.empty()) save_curves(simulation, arguments);
}

}  // namespace

void add_simulate(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "simulate", "Simulate a step on up to thousands of workers: time, links, and scaling");
  command->add_option("SUBJECT", arguments->subject, "Configuration (.toml) or model")->required();
  command
      ->add_option("--on", arguments->on,
                   fmt::format("Machines: a file (.toml), or one of {} (default: this machine)",
                               join(plan::known_machines(), ", ")))
      ->type_name("MACHINES");
  command->add_option("-n,--workers", arguments->workers, "Number of workers")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command
      ->add_option(
          "--strategies", arguments->strategies,
          fmt::format("Strategies to compare, of {}", join(plan::exchange_strategies(), ", ")))
      ->delimiter(',')
      ->type_name("S,S,...")
      ->capture_default_str();
  command
      ->add_option("--servers", arguments->servers,
                   "Parameter servers of ps (default: one on each machine)")
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command
      ->add_option("--local-steps", arguments->local_steps,
                   "Steps between two exchanges (cluster.local_steps); not with ps")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--delay", arguments->delay,
                   "With ps: number of iterations that workers may be ahead (cluster.delay)")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--failures", arguments->failures,
                   "Mean time between failures of a machine, such as \"30 days\": prints the time "
                   "lost with and without elastic training")
      ->type_name("TIME");
  command
      ->add_option("--trace", arguments->trace,
                   "Write the simulated messages of the first strategy as a timeline for Perfetto")
      ->type_name("FILE");
  command
      ->add_option("--scaling", arguments->scaling,
                   "weak: train.batch_size samples per worker; strong: for all workers together")
      ->check(CLI::IsMember({"weak", "strong"}))
      ->capture_default_str();
  command->add_flag("--closed-form", arguments->closed_form,
                    "Use formulas instead of simulating messages");
  command->add_option("--svg", arguments->svg, "Write scaling curves as SVG")->type_name("FILE");
  command->add_option("--input", arguments->input, "Shape of one sample, for a model by name")
      ->type_name("CxHxW");
  add_overrides(command, arguments->overrides);
  command->footer(
      "Examples:\n"
      "  artel simulate resnet50 --on lab --workers 8\n"
      "  artel simulate resnet50 --on infiniband --workers 1000 --strategies ring,ps --servers 64\n"
      "  artel simulate examples/char_gpt.toml --on lab --scaling strong --svg scaling.svg");
  command->callback([arguments] { simulate(*arguments); });
}

}  // namespace artel::cli
