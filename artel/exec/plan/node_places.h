// Assigns each node of a graph to a device.
#pragma once

#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

// True for nodes without a kernel, whose output is the memory of their input: reshapes of row-major
// values, and the copies that mark shards.
bool is_view(const Node& node);

struct NodePlaces {
  std::vector<Device*> devices;  // by node
  std::vector<bool> fusible;     // element-wise nodes that may share a kernel
};

// Assigns a node to `device` if it has a kernel for the op or can generate one for a group. All
// other nodes run on the CPU, and each of their ops is logged once.
NodePlaces place_nodes(const Graph& graph, Device& device);

}  // namespace artel
