#include "artel/cli/profile.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/exec/peak.h"
#include "artel/observe/table.h"

namespace artel::cli {
namespace {

struct Row {
  const PlannedKernel* planned = nullptr;
  double seconds = 0;  // of all lanes
};

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }
std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

const Device& device_of_output(const Plan& plan, const PlannedKernel& kernel) {
  return *plan.buffers[static_cast<size_t>(kernel.outputs[0])].device;
}

bool runs_on_cpu(const Plan& plan, const PlannedKernel& kernel) {
  return &device_of_output(plan, kernel) == &cpu();
}

// A copy between the CPU and a device.
bool is_copy(const Plan& plan, const PlannedKernel& kernel) {
  return !kernel.inputs.empty() && &device_of_output(plan, kernel) !=
                                       plan.buffers[static_cast<size_t>(kernel.inputs[0])].device;
}

// The copies of a step; empty on the CPU.
std::string copies(const StepBench& bench, const StepBench::Result& result, double in_kernels) {
  if (&bench.device() == &cpu()) return {};
  const auto per_step = [&](int64_t bytes) {
    return format_bytes(static_cast<double>(bytes) / static_cast<double>(result.steps));
  };
  return fmt::format("copied per step: {} to the device, {} back; {} % of the step in kernels\n",
                     per_step(result.copied.to_device), per_step(result.copied.from_device),
                     percent(in_kernels));
}

}  // namespace

std::string profile(StepBench& bench, double seconds) {
  const StepBenchOptions& options = bench.options();
  require(options.batch % options.lanes == 0, ErrorKind::invalid_argument,
          "a profile needs equal lanes: got a batch of {} in {} lanes; try --lanes 1",
          options.batch, options.lanes);
  const double peak = measure_peak_flops();
  const Plan& plan = bench.stepper().program(options.batch / options.lanes).plan();
  bench.run(0);  // the first step creates kernels and buffers

  std::vector<std::vector<double>> by_lane(options.lanes, std::vector<double>(plan.kernels.size()));
  bench.stepper().set_timing([&](int lane, const KernelTiming& timing) {
    by_lane[lane][timing.kernel] += timing.seconds;
  });
  const StepBench::Result result = bench.run(seconds);
  bench.stepper().set_timing({});

  const auto steps = static_cast<double>(result.steps);
  // Groups of lanes run side by side, each on one core, or threads share each kernel.
  const int side_by_side = bench.stepper().slots();
  const int cores_of_kernel = options.threads / side_by_side;
  std::vector<Row> rows(plan.kernels.size());
  double in_kernels = 0, in_copies = 0, operations = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].planned = &plan.kernels[i];
    for (const std::vector<double>& lane : by_lane) rows[i].seconds += lane[i] / steps;
    (is_copy(plan, plan.kernels[i]) ? in_copies : in_kernels) += rows[i].seconds;
    operations += plan.kernels[i].flops * options.lanes;
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds > b.seconds; });

  const double wall = result.seconds / steps;
  const double available = wall * side_by_side;
  observe::Table table({"layer", "op", "algorithm", "ms", "% of step", "GFLOP/s", "% of peak"});
  for (const Row& row : rows) {
    const double speed = row.seconds > 0 ? row.planned->flops * options.lanes / row.seconds : 0;
    table.add({row.planned->layer, row.planned->op, row.planned->kernel.algorithm,
               milliseconds(row.seconds), percent(row.seconds / available),
               fmt::format("{:.1f}", speed / 1e9),
               runs_on_cpu(plan, *row.planned) ? percent(speed / (peak * cores_of_kernel)) : ""});
  }
  const double rest = std::max(0.0, available - in_kernels - in_copies);
  table.add({"update and waiting", "", "", milliseconds(rest), percent(rest / available), "", ""});
  const std::string text = table.text() + copies(bench, result, in_kernels / available);
  return fmt::format(
      "{}step of {} on {}: {} ms, {:.1f} samples/s, {:.1f} GFLOP/s with {} and {}; "
      "peak of one core {:.1f} GFLOP/s\n",
      text, counted(options.batch, "sample"), bench.device().name(), milliseconds(wall),
      static_cast<double>(options.batch) / wall, operations / wall / 1e9,
      counted(options.threads, "thread"), counted(options.lanes, "lane"), peak / 1e9);
}

}  // namespace artel::cli
