// Chains of element-wise ops become one pass over memory.
#pragma once

#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

bool is_elementwise(const Node& node);

// The layout rule of element-wise ops: images stay channels-last if any operand of the full shape
// is.
LayoutChoice elementwise_layouts(const Graph& graph, const Node& node,
                                 const std::vector<Layout>& offered);

// Nodes that will run as one step, in an order that respects their inputs.
struct NodeGroup {
  std::vector<NodeId> nodes;
  bool elementwise = false;
};

// Every node in exactly one group. An element-wise node joins the step that computes the last of
// its inputs if that step is element-wise over the same elements; all else runs alone. `layouts`
// holds the layout of each value.
std::vector<NodeGroup> group_nodes(const Graph& graph, const std::vector<Layout>& layouts);

// The kernel of an element-wise group. `inputs` and `outputs` are the values that it reads from and
// leaves in memory, filled in by the call; `visible` says which values are used outside of the
// group.
Kernel make_elementwise(const Graph& graph, const std::vector<NodeId>& nodes,
                        const std::vector<Layout>& layouts, const std::vector<bool>& visible,
                        std::vector<ValueId>& inputs, std::vector<ValueId>& outputs);

}  // namespace artel
