#include "artel/plan/network/step_simulation.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/process.h"
#include "artel/base/random.h"
#include "artel/base/text.h"

namespace artel::plan {
namespace {

// Bytes that the busiest machine sends or receives in one round of a star-shaped exchange, in
// multiples of the size of the data. Messages within a machine do not share a link.
double volume_of_round(const Exchange& exchange, double machines) {
  const double n = exchange.workers, servers = exchange.servers, own = n / machines;
  if (exchange.strategy == "coordinator") return machines > 1 ? n - own : 1;
  if (exchange.strategy == "direct") return machines > 1 ? own * (n - own) / n : 1 / n;
  if (machines < 2) return 1 / servers;
  // A server receives from the workers of other machines. A machine sends the parts that it does
  // not serve.
  const double sent = servers < machines ? own : own * (servers - 1) / servers;
  return std::max((n - own) / servers, sent);
}

// Seconds of the exchange without computation.
double exchange_seconds(const Pool& pool, const Exchange& exchange) {
  if (exchange.workers < 2) return 0;
  const auto machines = static_cast<size_t>(1 + *std::ranges::max_element(exchange.hosts));
  const comm::LinkCost& link = machines > 1 ? pool.between : pool.kind.inside;
  const comm::RankCount count = {static_cast<size_t>(exchange.workers), machines};
  const double n = exchange.workers;
  const double round =
      volume_of_round(exchange, static_cast<double>(machines)) * exchange.bytes / link.bandwidth;
  // The sum is broadcast while gradients arrive.
  if (exchange.strategy == "coordinator")
    return (1 + std::ceil(std::log2(n))) * link.latency + round;
  if (exchange.strategy == "ps" || exchange.strategy == "direct") return 2 * (link.latency + round);
  if (exchange.strategy == "exact")
    return comm::predicted_exact_seconds(pool.links(), count, most_sums(exchange), exchange.bytes);
  return comm::predicted_seconds(pool.links(), comm::algorithm_from_string(exchange.strategy),
                                 count, exchange.bytes);
}

// Bytes of the busiest machine, by a formula if a sum over all messages would take long.
double busiest_bytes_of_form(const Pool& pool, const Exchange& exchange) {
  constexpr double kMostMessages = 1e6;
  const double machines = static_cast<double>(pool.machines);
  if (machines < 2) return 0;
  if (message_count(exchange) < kMostMessages) return busiest_bytes(exchange);
  const double rounds = exchange.strategy == "coordinator" ? 1 : 2;
  if (exchange.strategy == "coordinator" || exchange.strategy == "ps" ||
      exchange.strategy == "direct")
    return rounds * volume_of_round(exchange, machines) * exchange.bytes;
  if (exchange.strategy == "tree") return 3 * exchange.bytes;
  const double size = exchange.strategy == "ring" ? exchange.workers : machines;
  return (most_sums(exchange) + 1) * (size - 1) / size * exchange.bytes;
}

// Looks next to this program and, for tests, in the folders above. Empty if it is not found.
std::filesystem::path simulator_program() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  for (std::filesystem::path folder = own.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    const std::filesystem::path program = folder / "artel_simulator";
    if (std::filesystem::is_regular_file(program, error)) return program;
    if (folder.filename() != "tests") break;
  }
  return {};
}

}  // namespace

// Random numbers, scaled so that their mean is 0 and the slowest machine is as slow as expected.
std::vector<double> compute_seconds(const Pool& pool, const SimulatedStep& step) {
  std::vector<double> deviations;
  for (int64_t machine = 0; machine < pool.machines; ++machine)
    deviations.push_back(Random({static_cast<uint64_t>(machine)}).normal());
  const double mean = std::accumulate(deviations.begin(), deviations.end(), 0.0) /
                      static_cast<double>(deviations.size());
  const double most = std::ranges::max(deviations) - mean;
  const double scale = most > 0 ? expected_largest(pool.machines) / most : 0;
  std::vector<double> seconds;
  for (int worker = 0; worker < step.exchange.workers; ++worker) {
    const double deviation =
        scale * (deviations[static_cast<size_t>(step.exchange.hosts[worker])] - mean);
    seconds.push_back(step.compute * std::max(0.1, 1 + pool.kind.variation * deviation));
  }
  return seconds;
}

StepResult closed_form(const Pool& pool, const SimulatedStep& step) {
  const std::vector<double> compute = compute_seconds(pool, step);
  const double slowest = *std::ranges::max_element(compute);
  const double mean =
      std::accumulate(compute.begin(), compute.end(), 0.0) / static_cast<double>(compute.size());
  StepResult result;
  result.exchange = exchange_seconds(pool, step.exchange);
  const double local = step.local_steps;
  result.exchange /= local;
  if (step.delay > 0)
    result.seconds = std::max(slowest, result.exchange);
  else if (step.local_steps > 1)
    result.seconds = slowest + result.exchange;
  else
    result.seconds = std::max(slowest, kStepBeforeSums * slowest + result.exchange);
  result.utilisation =
      busiest_bytes_of_form(pool, step.exchange) / local / pool.between.bandwidth / result.seconds;
  result.waiting = 1 - mean / result.seconds;
  return result;
}

bool can_simulate_messages() { return !simulator_program().empty(); }

StepResult simulate_messages(const Pool& pool, const SimulatedStep& step, double patience,
                             const std::string& trace) {
  const std::filesystem::path program = simulator_program();
  require(!program.empty(), ErrorKind::unsupported,
          "[simulate] this build has no SimGrid; install libsimgrid-dev and build again, or use "
          "--closed-form");
  std::vector<std::string> arguments = simulator_arguments(pool, step);
  arguments.insert(arguments.begin(), program.string());
  if (!trace.empty()) arguments.push_back(std::string(kTraceOption) + trace);
  const ProcessResult run = run_program(arguments, "/", Deadline::after(patience));
  require(run.exit_code == 0, ErrorKind::internal, "[simulate] {} ended with code {}: {}",
          program.string(), run.exit_code, printable_line(trim(run.output).substr(0, 300)));
  StepResult result = {.simulated = true};
  // Only the last line is the result. SimGrid may print warnings before it.
  std::istringstream text(split(trim(run.output), '\n').back());
  text >> result.seconds >> result.exchange >> result.utilisation >> result.waiting;
  require(!text.fail(), ErrorKind::internal, "[simulate] {} printed no result: {}",
          program.string(), printable_line(run.output.substr(0, 300)));
  return result;
}

int saturating_workers(const Machines& machines, int servers, double bytes, double compute,
                       int most) {
  constexpr double kSlower = 1.1;
  const auto saturates = [&](int workers) {
    Pool pool = pool_of(machines, workers);
    pool.kind.variation = 0;
    return closed_form(pool, {make_exchange("ps", pool, servers, bytes), compute}).seconds >
           kSlower * compute;
  };
  // Each server needs a machine.
  int least = std::max(2, servers * static_cast<int>(pool_of(machines, 1).kind.devices));
  if (least > most || !saturates(most)) return 0;
  while (least < most) {
    const int middle = least + (most - least) / 2;
    if (saturates(middle))
      most = middle;
    else
      least = middle + 1;
  }
  return least;
}

std::vector<std::string> simulator_arguments(const Pool& pool, const SimulatedStep& step) {
  std::vector<std::string> arguments = {step.exchange.strategy};
  const MachineKind& kind = pool.kind;
  for (const double number :
       {static_cast<double>(step.exchange.workers), static_cast<double>(step.exchange.servers),
        static_cast<double>(step.exchange.lanes), step.exchange.bytes, step.compute,
        static_cast<double>(pool.machines), static_cast<double>(kind.devices), pool.between.latency,
        pool.between.bandwidth, kind.inside.latency, kind.inside.bandwidth, kind.variation,
        static_cast<double>(step.local_steps)})
    arguments.push_back(fmt::format("{}", number));
  return arguments;
}

SimulatorTask read_simulator_arguments(const std::vector<std::string>& arguments) {
  std::string strategy;
  int servers = 0, lanes = 0;
  double bytes = 0;
  SimulatorTask task;
  Pool& pool = task.pool;
  std::istringstream text(join(arguments, " "));
  text >> strategy >> pool.workers >> servers >> lanes >> bytes >> task.step.compute >>
      pool.machines >> pool.kind.devices >> pool.between.latency >> pool.between.bandwidth >>
      pool.kind.inside.latency >> pool.kind.inside.bandwidth >> pool.kind.variation >>
      task.step.local_steps;
  require(!text.fail() && pool.workers > 0 && pool.kind.devices > 0, ErrorKind::invalid_argument,
          "[simulator] got {} arguments, expected a strategy and 13 numbers", arguments.size());
  task.step.exchange = make_exchange(strategy, pool, servers, bytes, lanes);
  return task;
}

std::string to_text(const StepResult& result) {
  return fmt::format("{} {} {} {}", result.seconds, result.exchange, result.utilisation,
                     result.waiting);
}

}  // namespace artel::plan
