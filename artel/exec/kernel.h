// How an op is computed: which layouts it wants, and the prepared function that runs it.
//
// Built-in kernels live one subject a file under exec/ops, mirroring graph/ops. A user adds one
// with `register_kernel`; examples/custom_op.cc shows it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/exec/choices.h"
#include "artel/exec/layout.h"
#include "artel/graph/graph.h"

namespace artel {

// What makes one run of a compiled graph differ from another, besides its inputs.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t lane = 0;
};

// The arguments of one call. Pointers are 64-byte aligned, dense, in the layouts asked for.
struct KernelRun {
  ThreadPool& pool;
  std::span<std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace;
  const StepContext& context;

  const float* in(int i) const { return reinterpret_cast<const float*>(inputs[i]); }
  float* out(int i) const { return reinterpret_cast<float*>(outputs[i]); }
  template <typename T>
  T* as_input(int i) const {
    return reinterpret_cast<T*>(inputs[i]);
  }
  template <typename T>
  T* as_output(int i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
};

// Immutable once made: several lanes may run it at the same time, each with its own memory.
struct Kernel {
  std::string algorithm;  // which of several ways, for profiles; may be empty
  size_t workspace_bytes = 0;
  std::function<void(const KernelRun&)> run;
  // Pairs (output, input) that may share memory if the input is not used afterwards.
  std::vector<std::pair<int, int>> in_place = {};
};

// What the maker of a kernel sees of its node.
struct KernelRequest {
  const Graph& graph;
  const Node& node;
  std::vector<Layout> input_layouts;  // as the definition's `layouts` asked for
  std::vector<Layout> output_layouts;
  int threads;  // of the pool it will run on
  KernelChoices& choices;

  const Shape& in(int i) const { return graph.type(node.inputs[i]).shape; }
  const Shape& out(int i = 0) const { return graph.type(node.outputs[i]).shape; }
  DType in_type(int i) const { return graph.type(node.inputs[i]).dtype; }
  int inputs() const { return static_cast<int>(node.inputs.size()); }
  const Attributes& attributes() const { return node.attributes; }
};

struct LayoutChoice {
  std::vector<Layout> inputs, outputs;
};

struct KernelDefinition {
  std::string op;
  std::function<Kernel(const KernelRequest&)> make;
  // Given the layouts in which the inputs are offered, those wanted. Absent: all row-major.
  std::function<LayoutChoice(const Graph&, const Node&, const std::vector<Layout>&)> layouts = {};
};

void register_kernel(KernelDefinition definition);
// Throws for an op that has no kernel.
const KernelDefinition& find_kernel(std::string_view op);

}  // namespace artel
