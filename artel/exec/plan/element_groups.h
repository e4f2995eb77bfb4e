// Fuses chains of element-wise ops into kernels that make one pass over memory.
#pragma once

#include <map>
#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

bool is_elementwise(const Node& node);

// The layout rule of element-wise ops: the result is channels-last if any operand of the full shape
// is.
LayoutChoice elementwise_layouts(const Graph& graph, const Node& node,
                                 const std::vector<Layout>& offered);

// Nodes that run as one kernel, in topological order.
struct NodeGroup {
  std::vector<NodeId> nodes;
  bool elementwise = false;
};

// Assigns every node to exactly one group. An element-wise node joins the group that computes its
// last input if that group is element-wise over the same elements. All other nodes form groups of
// their own. A group never spans two devices, or the forward and the backward pass. `layouts` holds
// the layout of each value, `devices` the device of each node, and `fusible` the nodes that may
// share a group.
std::vector<NodeGroup> group_nodes(const Graph& graph, const std::vector<Layout>& layouts,
                                   const std::vector<Device*>& devices,
                                   const std::vector<bool>& fusible);

// Marks the values that are read outside the group that computes them.
std::vector<bool> visible_values(const Graph& graph, const std::vector<NodeGroup>& groups);

// The layouts of all values, with overrides for one kernel.
class ElementLayouts {
 public:
  explicit ElementLayouts(const std::vector<Layout>& all) : all_(all) {}
  void set(ValueId value, const Layout& layout) { own_[value] = layout; }
  const Layout& operator[](ValueId value) const {
    const auto found = own_.find(value);
    return found == own_.end() ? all_[value] : found->second;
  }

 private:
  const std::vector<Layout>& all_;
  std::map<ValueId, Layout> own_;
};

// Makes the kernel of an element-wise group. `device` is the CPU or a device whose traits include
// groups. `visible` marks the values that are read outside the group. Sets `inputs` and `outputs`
// to the values that the kernel reads from memory and writes to memory.
Kernel make_elementwise(const Graph& graph, const std::vector<NodeId>& nodes,
                        const ElementLayouts& layouts, const std::vector<bool>& visible,
                        Device& device, std::vector<ValueId>& inputs,
                        std::vector<ValueId>& outputs);

}  // namespace artel
