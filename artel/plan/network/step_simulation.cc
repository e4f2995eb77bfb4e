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

// Seconds of the exchange without computation.
double exchange_seconds(const Pool& pool, const Exchange& exchange) {
  if (exchange.workers < 2) return 0;
  const auto machines = static_cast<size_t>(1 + *std::ranges::max_element(exchange.hosts));
  const comm::LinkCost& link = machines > 1 ? pool.between : pool.kind.inside;
  const double latency = link.latency, wire = exchange.bytes / link.bandwidth;
  const double n = exchange.workers;
  if (exchange.strategy == "coordinator")
    return latency + (n - 1) * wire + std::ceil(std::log2(n)) * (latency + 2 * wire);
  if (exchange.strategy == "ps") return 2 * (latency + n / exchange.servers * wire);
  if (exchange.strategy == "direct") return 2 * (latency + (n - 1) / n * wire);
  return comm::predicted_seconds(pool.links(), comm::algorithm_from_string(exchange.strategy),
                                 {static_cast<size_t>(exchange.workers), machines}, exchange.bytes);
}

// Bytes of the busiest machine, by a formula instead of a sum over all messages.
double busiest_bytes_of_form(const Pool& pool, const Exchange& exchange) {
  const double n = exchange.workers, machines = static_cast<double>(pool.machines);
  if (machines < 2) return 0;
  if (exchange.strategy == "coordinator") return (n - 1) * exchange.bytes;
  if (exchange.strategy == "ps") return (n - n / machines) / exchange.servers * exchange.bytes;
  const double size = exchange.strategy == "hierarchical" ? machines : n;
  return 2 * (size - 1) / size * exchange.bytes;
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

std::vector<double> compute_seconds(const Pool& pool, const SimulatedStep& step) {
  std::vector<double> seconds;
  for (int worker = 0; worker < step.exchange.workers; ++worker) {
    Random random({static_cast<uint64_t>(step.exchange.hosts[worker])});
    const double slower = 1 + pool.kind.variation * random.normal();
    seconds.push_back(step.compute * std::max(0.1, slower));
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
  result.seconds = std::max(slowest, kStepBeforeSums * slowest + result.exchange);
  result.utilisation =
      busiest_bytes_of_form(pool, step.exchange) / pool.between.bandwidth / result.seconds;
  result.waiting = 1 - mean / result.seconds;
  return result;
}

bool can_simulate_messages() { return !simulator_program().empty(); }

StepResult simulate_messages(const Pool& pool, const SimulatedStep& step, double patience) {
  const std::filesystem::path program = simulator_program();
  require(!program.empty(), ErrorKind::unsupported,
          "[simulate] this build has no SimGrid; install libsimgrid-dev and build again, or use "
          "--closed-form");
  std::vector<std::string> arguments = simulator_arguments(pool, step);
  arguments.insert(arguments.begin(), program.string());
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

std::vector<std::string> simulator_arguments(const Pool& pool, const SimulatedStep& step) {
  std::vector<std::string> arguments = {step.exchange.strategy};
  const MachineKind& kind = pool.kind;
  for (const double number :
       {static_cast<double>(step.exchange.workers), static_cast<double>(step.exchange.servers),
        step.exchange.bytes, step.compute, static_cast<double>(pool.machines),
        static_cast<double>(kind.devices), pool.between.latency, pool.between.bandwidth,
        kind.inside.latency, kind.inside.bandwidth, kind.variation})
    arguments.push_back(fmt::format("{}", number));
  return arguments;
}

SimulatorTask read_simulator_arguments(const std::vector<std::string>& arguments) {
  std::string strategy;
  int servers = 0;
  double bytes = 0;
  SimulatorTask task;
  Pool& pool = task.pool;
  std::istringstream text(join(arguments, " "));
  text >> strategy >> pool.workers >> servers >> bytes >> task.step.compute >> pool.machines >>
      pool.kind.devices >> pool.between.latency >> pool.between.bandwidth >>
      pool.kind.inside.latency >> pool.kind.inside.bandwidth >> pool.kind.variation;
  require(!text.fail() && pool.workers > 0 && pool.kind.devices > 0, ErrorKind::invalid_argument,
          "[simulator] got {} arguments, expected a strategy and 11 numbers", arguments.size());
  task.step.exchange = make_exchange(strategy, pool, servers, bytes);
  return task;
}

std::string to_text(const StepResult& result) {
  return fmt::format("{} {} {} {}", result.seconds, result.exchange, result.utilisation,
                     result.waiting);
}

}  // namespace artel::plan
