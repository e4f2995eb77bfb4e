#include "artel/exec/plan/node_places.h"

#include <set>

#include "artel/base/log.h"
#include "artel/base/mutex.h"
#include "artel/exec/plan/element_groups.h"
#include "artel/graph/op.h"

namespace artel {
namespace {

void name_once(const Device& device, const Node& node) {
  static Mutex mutex;
  static std::set<std::pair<std::string, std::string>> named;
  const MutexLock lock(mutex);
  if (named.emplace(device.kind(), node.op->name).second)
    log(LogLevel::warning, "{} has no kernel for '{}' (layer '{}'); running it on the CPU",
        device.name(), node.op->name, node.name);
}

}  // namespace

bool is_view(const Node& node) {
  return node.op->name == "reshape" || node.op->name == "shard_copies";
}

NodePlaces place_nodes(const Graph& graph, Device& device) {
  const DeviceTraits* const traits = find_traits(device);
  NodePlaces places;
  for (const Node& node : graph.nodes()) {
    const bool groups = traits && traits->fuses && traits->fuses(node.op->name);
    const bool there = groups || has_kernel(device, node.op->name);
    places.devices.push_back(there ? &device : &cpu());
    places.fusible.push_back(is_elementwise(node) && (groups || places.devices.back() == &cpu()));
    if (&device != &cpu() && !there && !is_view(node)) name_once(device, node);
  }
  return places;
}

}  // namespace artel
