// Chains of element-wise ops become one pass over memory.
#pragma once

#include <map>
#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

bool is_elementwise(const Node& node);

// The layout rule of element-wise ops: images stay channels-last if any operand of the full shape
// is.
LayoutChoice elementwise_layouts(const Graph& graph, const Node& node,
                                 const std::vector<Layout>& offered);

// Nodes that will run as one kernel, in an order that respects their inputs.
struct NodeGroup {
  std::vector<NodeId> nodes;
  bool elementwise = false;
};

// Every node in exactly one group. An element-wise node joins the kernel that computes the last of
// its inputs if that kernel is element-wise over the same elements; all else runs alone. No kernel
// is both of the forward pass and of the backward pass. `layouts` holds the layout of each value,
// `fusible` says which nodes may be in a group with others.
std::vector<NodeGroup> group_nodes(const Graph& graph, const std::vector<Layout>& layouts,
                                   const std::vector<bool>& fusible);

// The layouts of all values, of which a kernel wants some otherwise.
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

// The kernel of an element-wise group. `inputs` and `outputs` are the values that it reads from and
// leaves in memory, filled in by the call; `visible` says which values are used outside of the
// group.
Kernel make_elementwise(const Graph& graph, const std::vector<NodeId>& nodes,
                        const ElementLayouts& layouts, const std::vector<bool>& visible,
                        std::vector<ValueId>& inputs, std::vector<ValueId>& outputs);

}  // namespace artel
