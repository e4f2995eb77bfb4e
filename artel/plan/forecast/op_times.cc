#include "artel/plan/forecast/op_times.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "artel/graph/cost.h"
#include "artel/graph/op.h"

namespace artel::plan {
namespace {

constexpr size_t kNumbers = 4;  // of each class: flops, bytes, bytes of weights, overhead

// Reshaping copies no data.
bool takes_no_time(const Node& node) {
  return node.op->name == "reshape" || node.op->name == "shard_copies";
}

double over(double amount, double speed) { return speed > 0 ? amount / speed : 0; }

// Without measurements, an op is limited by arithmetic or by memory.
double unmeasured_seconds(double flops, double bytes, const MachineKind& kind) {
  return std::max(flops / kind.flops, bytes / kind.memory_bandwidth);
}

std::vector<double> unmeasured_node_seconds(const Graph& graph, const MachineKind& kind) {
  std::vector<double> seconds;
  for (const Node& node : graph.nodes()) {
    double bytes = 0;
    for (const ValueId output : node.outputs) bytes += static_cast<double>(bytes_of(graph, output));
    if (node.op->name == "embedding")
      bytes *= 2;  // reads a few rows of its table
    else
      for (const ValueId input : node.inputs) bytes += static_cast<double>(bytes_of(graph, input));
    seconds.push_back(
        takes_no_time(node) ? 0 : unmeasured_seconds(node_flops(graph, node), bytes, kind));
  }
  return seconds;
}

using Row = std::vector<double>;

// Nonnegative least squares by coordinate descent on the normal equations. Columns are scaled to
// length 1, so that operations and overheads weigh alike.
Row solve(const std::vector<Row>& rows, const std::vector<double>& targets) {
  constexpr int kSweeps = 20'000;
  const size_t n = rows.empty() ? 0 : rows[0].size();
  Row scale(n), right(n), solution(n);
  for (const Row& row : rows)
    for (size_t i = 0; i < n; ++i) scale[i] += row[i] * row[i];
  for (double& s : scale) s = s > 0 ? 1 / std::sqrt(s) : 0;
  std::vector<Row> products(n, Row(n));
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < n; ++i) {
      if (rows[r][i] == 0) continue;
      right[i] += rows[r][i] * scale[i] * targets[r];
      for (size_t j = 0; j < n; ++j)
        products[i][j] += rows[r][i] * scale[i] * rows[r][j] * scale[j];
    }
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t i = 0; i < n; ++i) {
      if (scale[i] == 0) continue;
      double rest = right[i];
      for (size_t j = 0; j < n; ++j)
        if (j != i) rest -= products[i][j] * solution[j];
      solution[i] = std::max(0.0, rest / products[i][i]);
    }
  for (size_t i = 0; i < n; ++i) solution[i] *= scale[i];
  return solution;
}

}  // namespace

double seconds_of(const KernelWork& work, const OpSpeed& speed) {
  return over(work.flops, speed.flops) + over(work.bytes, speed.bandwidth) +
         over(work.weight_bytes, speed.weight_bandwidth) + speed.overhead;
}

std::vector<double> node_seconds(const Graph& graph, const MachineKind& kind) {
  if (kind.ops.empty()) return unmeasured_node_seconds(graph, kind);
  KernelChoices choices;
  choices.tune = false;
  const Plan plan = make_plan(graph, 1, choices);
  std::vector<double> seconds(graph.nodes().size());
  for (const PlannedKernel& kernel : plan.kernels) {
    const KernelWork work = work_of(graph, plan, kernel);
    const auto measured = kind.ops.find(work.op_class);
    const double all = measured == kind.ops.end()
                           ? unmeasured_seconds(work.flops, work.bytes + work.weight_bytes, kind)
                           : seconds_of(work, measured->second) / static_cast<double>(kind.cores);
    for (const NodeId node : kernel.nodes)
      seconds[node] += all / static_cast<double>(kernel.nodes.size());
  }
  return seconds;
}

OpFit fit_op_speeds(std::span<const std::vector<KernelSample>> graphs) {
  std::map<std::string, size_t> places;  // of each class: its first number
  for (const std::vector<KernelSample>& graph : graphs)
    for (const KernelSample& sample : graph)
      places.try_emplace(sample.work.op_class, places.size() * kNumbers);
  std::vector<Row> rows;
  std::vector<double> targets;
  for (const std::vector<KernelSample>& graph : graphs) {
    double total = 0;
    for (const KernelSample& sample : graph) total += sample.seconds;
    for (const auto& [work, seconds] : graph) {
      if (seconds <= 0) continue;
      // Between absolute errors, which ignore small kernels, and relative ones, which serve them.
      const double weight = 1 / std::sqrt(seconds * total);
      Row row(places.size() * kNumbers);
      const std::array<double, kNumbers> numbers = {work.flops, work.bytes, work.weight_bytes, 1};
      for (size_t i = 0; i < kNumbers; ++i) row[places[work.op_class] + i] = numbers[i] * weight;
      rows.push_back(std::move(row));
      targets.push_back(seconds * weight);
    }
  }
  const Row solution = solve(rows, targets);
  OpFit fit;
  for (const auto& [name, place] : places)
    fit.ops[name] = {.flops = over(1, solution[place]),
                     .bandwidth = over(1, solution[place + 1]),
                     .weight_bandwidth = over(1, solution[place + 2]),
                     .overhead = solution[place + 3]};
  for (const std::vector<KernelSample>& graph : graphs) {
    double measured = 0, forecast = 0;
    for (const KernelSample& sample : graph) {
      measured += sample.seconds;
      forecast += seconds_of(sample.work, fit.ops[sample.work.op_class]);
    }
    if (measured > 0)
      fit.error += std::abs(forecast / measured - 1) / static_cast<double>(graphs.size());
  }
  return fit;
}

}  // namespace artel::plan
