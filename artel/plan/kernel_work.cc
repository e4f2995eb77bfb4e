#include "artel/plan/kernel_work.h"

#include <algorithm>

#include "artel/graph/op.h"

namespace artel::plan {
namespace {

// The processor's kernels are chosen by the size of the window and the stride
// (exec/cpu/convolution).
std::string convolution_class(const Graph& graph, const Node& node) {
  constexpr int64_t kFewChannels = 8;
  const bool of_weights = node.op->name == "conv2d_backward_weights";
  const std::string suffix = of_weights ? "_weights" : "";
  if (node.attributes.integer("groups") > 1) return "grouped_convolution" + suffix;
  const Shape& weights = graph.type(of_weights ? node.outputs[0] : node.inputs[1]).shape;
  const auto window = [&](int64_t extent) { return weights[2] == extent && weights[3] == extent; };
  if (window(1)) return "convolution_1x1" + suffix;
  const bool dense = std::ranges::all_of(node.attributes.integers("stride"),
                                         [](int64_t stride) { return stride == 1; });
  if (window(3) && dense && weights[1] >= kFewChannels) return "convolution_3x3" + suffix;
  return "convolution" + suffix;
}

}  // namespace

std::string op_class(const Graph& graph, const Node& node) {
  const std::string_view name = node.op->name;
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (has("conv")) return convolution_class(graph, node);
  if (has("norm")) return "normalisation";
  if (has("pool")) return "pooling";
  if (has("attention")) return has("backward") ? "attention_backward" : "attention";
  if (name == "matmul" || has("dense")) return "product";
  if (has("lstm") || has("gru") || has("recurrence")) return "recurrence";
  return "other";
}

KernelWork work_of(const Graph& graph, const Plan& plan, const PlannedKernel& kernel) {
  KernelWork work = {.op_class = "other", .flops = kernel.flops};
  if (!kernel.nodes.empty())
    if (const Node& node = graph.node(kernel.nodes[0]); node.op->name == kernel.op)
      work.op_class = op_class(graph, node);
  const auto add = [&](int buffer, double factor) {
    const Buffer& one = plan.buffers[static_cast<size_t>(buffer)];
    const bool weights = one.region == Region::parameters || one.region == Region::gradients;
    (weights ? work.weight_bytes : work.bytes) += factor * static_cast<double>(one.bytes);
  };
  // An embedding reads only those rows of its table that it copies to its output.
  const bool reads_rows = kernel.op == "embedding";
  if (!reads_rows)
    for (const int buffer : kernel.inputs) add(buffer, 1);
  for (const int buffer : kernel.outputs) add(buffer, reads_rows ? 2 : 1);
  return work;
}

}  // namespace artel::plan
