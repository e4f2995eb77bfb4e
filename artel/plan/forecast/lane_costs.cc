#include "artel/plan/forecast/lane_costs.h"

#include "artel/base/error.h"
#include "artel/graph/cost.h"
#include "artel/graph/op.h"
#include "artel/plan/forecast/op_times.h"

namespace artel::plan {
namespace {

// Graphs with more values than this are measured with fewer samples.
constexpr double kMostMeasuredBytes = 1 << 30;

double bytes_of_values(const Graph& graph) {
  double bytes = 0;
  for (const Node& node : graph.nodes())
    for (const ValueId output : node.outputs) bytes += static_cast<double>(bytes_of(graph, output));
  return bytes;
}

std::unique_ptr<LaneCosts> costs_of(const Graph& graph, const std::vector<double>& seconds,
                                    const MachineKind& kind) {
  auto lane = std::make_unique<LaneCosts>(LaneCosts{GraphCosts(graph, seconds)});
  double moved = 0;
  for (const Node& node : graph.nodes()) {
    lane->flops += node_flops(graph, node);
    for (const ValueId output : node.outputs) moved += static_cast<double>(bytes_of(graph, output));
    for (const ValueId input : node.inputs) moved += static_cast<double>(bytes_of(graph, input));
    if (!exchanges_shards(node.op->name)) continue;
    lane->group_bytes += static_cast<double>(bytes_of(graph, node.outputs[0]));
    ++lane->group_sums;
  }
  lane->memory_seconds = moved / kind.memory_bandwidth;
  for (const ValueId id : graph.of_kind(ValueKind::parameter)) {
    const auto bytes = static_cast<double>(bytes_of(graph, id));
    lane->parameters += static_cast<double>(graph.type(id).shape.elements());
    lane->largest = std::max(lane->largest, bytes);
  }
  return lane;
}

}  // namespace

const LaneCosts* LaneCostTable::find(int64_t samples, int tensor, const MachineKind& kind) {
  const Key key(samples, tensor, kind.cores, kind.flops, kind.memory_bandwidth, kind.ops);
  if (const auto found = known_.find(key); found != known_.end()) return found->second.get();
  std::unique_ptr<LaneCosts> lane;
  try {
    const ShardPart part = {tensor, 0, 1};
    const Graph graph = task_.graph(samples, part);
    lane = costs_of(graph, seconds_of_nodes(graph, samples, part, kind), kind);
  } catch (const Error& error) {
    // The shards do not divide the attention heads, or a batch norm has only one value.
    const bool impossible =
        error.kind() == ErrorKind::invalid_argument || error.kind() == ErrorKind::shape;
    if (!impossible || (tensor == 1 && samples > 1)) throw;
  }
  return (known_[key] = std::move(lane)).get();
}

std::vector<double> LaneCostTable::seconds_of_nodes(const Graph& graph, int64_t samples,
                                                    const ShardPart& part,
                                                    const MachineKind& kind) const {
  if (!task_.measure) return node_seconds(graph, kind);
  int64_t fewer = samples;
  while (fewer > 2 && bytes_of_values(task_.graph(fewer, part)) > kMostMeasuredBytes)
    fewer = (fewer + 1) / 2;
  std::vector<double> seconds =
      fewer == samples ? task_.measure(graph) : task_.measure(task_.graph(fewer, part));
  const double factor = static_cast<double>(samples) / static_cast<double>(fewer * kind.cores);
  for (double& one : seconds) one *= factor;
  return seconds;
}

}  // namespace artel::plan
