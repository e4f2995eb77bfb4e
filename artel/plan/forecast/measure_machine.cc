#include "artel/plan/forecast/measure_machine.h"

#include <algorithm>
#include <fstream>

#include "artel/base/memory_limit.h"
#include "artel/exec/libraries.h"
#include "artel/exec/memory_speed.h"
#include "artel/exec/peak.h"
#include "artel/plan/forecast/op_times.h"
#include "artel/plan/measure.h"

namespace artel::plan {
namespace {

namespace fs = std::filesystem;

// Speed of large matrix products relative to multiply-adds in registers.
constexpr double kProductShare = 0.7;

std::vector<KernelSample> samples_of(const Graph& graph, const KernelChoices& choices) {
  constexpr int kRuns = 8;
  std::vector<KernelSample> samples;
  for (const KernelTime& kernel : measured_kernels(graph, choices, kRuns))
    samples.push_back({kernel.work, kernel.seconds});
  return samples;
}

}  // namespace

double network_speed(const fs::path& folder) {
  double best = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    // Bridges, tunnels, and virtual pairs have no device, and their speed is meaningless.
    if (!fs::exists(entry.path() / "device", ignored)) continue;
    double megabits = 0;
    std::ifstream(entry.path() / "speed") >> megabits;  // -1 or nothing without a cable
    best = std::max(best, megabits * 1e6 / 8);
  }
  return best;
}

MachineKind rough_machine(const ThisMachine& machine) {
  MachineKind kind = {.name = machine.name, .cores = machine.cores};
  ThreadPool pool(machine.cores, limit_library_threads);
  kind.flops = kProductShare * measure_peak_flops() * machine.cores;
  kind.memory = static_cast<double>(memory_limit_bytes());
  kind.memory_bandwidth = measure_memory_speed(pool, machine.cores);
  if (const double network = network_speed(); network > 0) kind.network.bandwidth = network;
  return kind;
}

MachineKind measured_machine(const ThisMachine& machine, std::span<const Graph> graphs,
                             const KernelChoices& choices) {
  MachineKind kind = rough_machine(machine);
  std::vector<std::vector<KernelSample>> samples;
  for (const Graph& graph : graphs) samples.push_back(samples_of(graph, choices));
  OpFit fit = fit_op_speeds(samples);
  if (const auto product = fit.ops.find("product");
      product != fit.ops.end() && product->second.flops > 0)
    kind.flops = product->second.flops * static_cast<double>(kind.cores);
  kind.ops = std::move(fit.ops);
  kind.fit_error = fit.error;
  return kind;
}

}  // namespace artel::plan
