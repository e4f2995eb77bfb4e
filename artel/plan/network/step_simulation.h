// Time of a step on many workers, message by message or by a closed form.
//
//   const artel::plan::Pool pool = artel::plan::pool_of(artel::plan::machines_by_name("lab"), 8);
//   const auto exchange = artel::plan::make_exchange("ring", pool, 1, 100e6);
//   const auto step = artel::plan::closed_form(pool, {.exchange = exchange, .compute = 0.1});
#pragma once

#include "artel/plan/network/exchange.h"

namespace artel::plan {

struct SimulatedStep {
  Exchange exchange;
  double compute = 0;   // seconds of a step on a worker of mean speed
  int local_steps = 1;  // steps between two exchanges, which then begin after the last one
  int delay = 0;        // with "ps": iterations by which a worker may be ahead; closed form only
};

struct StepResult {
  double seconds = 0;
  double exchange = 0;     // seconds from the first message until the last worker has all sums
  double utilisation = 0;  // fraction of the step in which the busiest machine's link is in use
  double waiting = 0;      // fraction of the step in which a worker is idle, averaged over workers
  bool simulated = false;  // false if computed by the closed form
};

// Share of a step before the first gradients are complete and can be sent.
inline constexpr double kStepBeforeSums = 1.0 / 3;

// Compute time of each worker in seconds. Speeds vary between machines by MachineKind::variation,
// and the slowest machine is as slow as expected of that number. The same in every run.
std::vector<double> compute_seconds(const Pool& pool, const SimulatedStep& step);

// Computes one step by formulas. With local steps, the exchange counts in proportion. With a delay,
// exchanges overlap later steps, so the slower of exchange and computation sets the pace.
StepResult closed_form(const Pool& pool, const SimulatedStep& step);

// True if the program artel_simulator, which needs SimGrid, is installed next to this one.
bool can_simulate_messages();
// Simulates every message with SimGrid in a separate process. Throws an Error of kind unsupported
// without SimGrid, and of kind timeout after `patience` seconds.
// `trace` is the path of a timeline for Perfetto to write; empty for none.
StepResult simulate_messages(const Pool& pool, const SimulatedStep& step, double patience,
                             const std::string& trace = "");

// The smallest number of workers whose step takes 10 % longer than that of one worker, because
// `servers` parameter servers cannot keep up. Uses closed forms for machines of the same kind. 0 if
// the servers can serve more than `most` workers.
int saturating_workers(const Machines& machines, int servers, double bytes, double compute,
                       int most);

// Arguments and result of the simulator process, as text.
inline constexpr std::string_view kTraceOption = "--trace=";  // the last argument, if any
struct SimulatorTask {
  Pool pool;
  SimulatedStep step;
};
std::vector<std::string> simulator_arguments(const Pool& pool, const SimulatedStep& step);
SimulatorTask read_simulator_arguments(const std::vector<std::string>& arguments);
std::string to_text(const StepResult& result);

}  // namespace artel::plan
