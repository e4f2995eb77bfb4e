// How an op is computed: which layouts it wants, and the prepared function that runs it.
//
//   artel::register_kernel({.op = "softsign", .elements = [](const artel::ElementRun& run) {
//                             for (int64_t i = 0; i < run.n; ++i)
//                               run.out[i] = run.in[0][i] / (1 + std::abs(run.in[0][i]));
//                           }});
//
// Built-in kernels live one subject a file under exec/ops, mirroring graph/ops. A user adds one
// with `register_kernel`; examples/custom_op.cc shows it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/exec/choices.h"
#include "artel/exec/device.h"
#include "artel/exec/layout.h"
#include "artel/graph/graph.h"

namespace artel {

class ShardExchange;

// What makes one run of a compiled graph differ from another, besides its inputs.
struct StepContext {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t lane = 0;
  ShardExchange* shards =
      nullptr;  // for a graph without some of the shards (exec/shard_exchange.h)
};

// Adjacent lanes that are added up to one sum, in postfix form: after lane `first + i`, merges[i]
// pairs of the latest sums are added.
struct LaneSubtree {
  int first = 0;  // counted from the first lane that runs
  std::vector<int> merges;

  int size() const { return static_cast<int>(merges.size()); }
};

// The arguments of one call: addresses on the kernel's device, 64-byte aligned, of dense values in
// the layouts asked for.
struct KernelRun {
  ThreadPool& pool;
  std::span<std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace;
  const StepContext& context;
  int64_t rows = 0;  // Kernel::rows of the lane's own kernel

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

// Immutable once made: several frames may run it at the same time, each with its own memory.
struct Kernel {
  std::string algorithm;  // which of several ways, for profiles; may be empty
  size_t workspace_bytes = 0;
  std::function<void(const KernelRun&)> run;
  // Pairs (output, input) that may share memory if the input is not used afterwards.
  std::vector<std::pair<int, int>> in_place = {};
  // Rows that a lane has: lanes of other sizes may run together with those of this kernel.
  int64_t rows = 0;
  // Runs several lanes at once, in the workspace of this kernel's lane, which is the first and has
  // the most rows. Each lane gets the bits that `run` gives it. Absent: one by one.
  std::function<void(std::span<const KernelRun>)> run_lanes = {};
  // Instead, for a kernel whose outputs are summed over lanes: the first lane's outputs get the
  // sum, those of the others may be overwritten. The bits are those of `run` and of adding in the
  // order of `merges` (LaneSubtree).
  std::function<void(std::span<const KernelRun>, std::span<const int> merges)> run_sums = {};
};

// The lanes of a batch, of which a graph computes one.
struct LaneCounts {
  int all = 1;       // whatever decides about bits may depend on it
  int together = 1;  // the most that run at once on a thread
};

// What the maker of a kernel sees of its node.
struct KernelRequest {
  const Graph& graph;
  const Node& node;
  std::vector<Layout> input_layouts;  // as the definition's `layouts` asked for
  std::vector<Layout> output_layouts;
  int threads;  // of the pool it will run on
  KernelChoices& choices;
  Device& device;  // of the kind in the definition
  LaneCounts lanes = {};

  const Shape& in(int i) const { return graph.type(node.inputs[i]).shape; }
  const Shape& out(int i = 0) const { return graph.type(node.outputs[i]).shape; }
  DType in_type(int i) const { return graph.type(node.inputs[i]).dtype; }
  int inputs() const { return static_cast<int>(node.inputs.size()); }
  const Attributes& attributes() const { return node.attributes; }
};

struct LayoutChoice {
  std::vector<Layout> inputs, outputs;
};

// Some elements of the operands of an element-wise op. `out` may be the memory of an input.
struct ElementRun {
  std::array<const float*, 3> in;  // null for operands that the op does not have
  float* out;
  int64_t n;
  const Attributes& attributes;
};

struct KernelDefinition {
  std::string op;
  std::function<Kernel(const KernelRequest&)> make = {};
  // Given the layouts in which the inputs come, the layouts wanted. Absent: all row-major.
  std::function<LayoutChoice(const Graph&, const Node&, const std::vector<Layout>&)> layouts = {};
  std::string device = "cpu";  // the kind of device that it is for
  // In place of `make` and `layouts`, on the CPU, for an op that computes each element of its one
  // output from the same elements of one to three inputs, all f32, broadcast as in NumPy: it
  // becomes part of one pass over memory together with the element-wise ops beside it. Called on
  // several threads for parts that are cut anywhere.
  std::function<void(const ElementRun&)> elements = {};
};

// Throws if the op already has a kernel for that kind of device, or if the definition has neither
// `make` nor `elements`, or both.
void register_kernel(KernelDefinition definition);
// Whether the op can run on this device by a kernel of its own.
bool has_kernel(const Device& device, std::string_view op);
// Throws for an op that has no kernel for this device.
const KernelDefinition& find_kernel(const Device& device, std::string_view op);

}  // namespace artel
