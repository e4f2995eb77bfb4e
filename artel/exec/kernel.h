// The computation of an op: the layouts it wants, and the prepared function that runs it.
//
//   artel::register_kernel({.op = "softsign", .elements = [](const artel::ElementRun& run) {
//                             for (int64_t i = 0; i < run.n; ++i)
//                               run.out[i] = run.in[0][i] / (1 + std::abs(run.in[0][i]));
//                           }});
//
// Built-in kernels are in exec/cpu/ops, one subject per file, mirroring graph/ops. Programs add
// their own with `register_kernel`; see examples/custom_op.cc.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/exec/device.h"
#include "artel/exec/plan/choices.h"
#include "artel/exec/plan/layout.h"
#include "artel/graph/graph.h"

namespace artel {

class ShardExchange;

// The differences between runs of a compiled graph, other than the inputs.
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

// Immutable. Several frames may run a kernel at the same time, each with its own memory.
struct Kernel {
  std::string algorithm;  // name of the algorithm for profiles; may be empty
  size_t workspace_bytes = 0;
  std::function<void(const KernelRun&)> run;
  // Pairs (output, input) that may share memory if the input is not used afterwards.
  std::vector<std::pair<int, int>> in_place = {};
  // Number of rows of a lane. Lanes of different sizes may run together.
  int64_t rows = 0;
  // Runs several lanes together, in the workspace of the first lane, which has the most rows. Must
  // give each lane the same bits as `run`. Without it, lanes run one by one.
  std::function<void(std::span<const KernelRun>)> run_lanes = {};
  // Alternative for kernels whose outputs are summed over lanes. Writes the sum to the outputs of
  // the first lane and may overwrite the outputs of the others. The bits are the same as with `run`
  // followed by additions in the order of `merges` (LaneSubtree).
  std::function<void(std::span<const KernelRun>, std::span<const int> merges)> run_sums = {};
};

// Numbers of lanes of a batch. A graph computes one lane.
struct LaneCounts {
  int all = 1;       // bits may depend on it
  int together = 1;  // the most that run at once on a thread
};

// A node as seen by the maker of its kernel.
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

// Element-wise nodes that run as one kernel. Registers [0, inputs) hold the inputs, and each
// instruction writes the next one.
struct ElementGroup {
  struct Instruction {
    std::string op;
    std::vector<int> operands;  // registers
    float immediate = 0;
  };
  // Over the axes of the group, in elements; 0 repeats the operand along the axis.
  using Strides = std::vector<int64_t>;

  std::vector<Instruction> code;
  std::vector<int> outputs;      // registers
  std::vector<int64_t> extents;  // outermost in memory first
  std::vector<Strides> input_strides, output_strides;

  int inputs() const { return static_cast<int>(input_strides.size()); }
};

// Abilities of a kind of device besides kernels of ops.
struct DeviceTraits {
  std::string device;
  // True if groups may contain this element-wise op.
  std::function<bool(std::string_view op)> fuses = {};
  std::function<Kernel(const ElementGroup&, Device&)> make_group = {};
  // Makes a kernel that converts the layout of an f32 value. Without it, the CPU converts layouts.
  std::function<Kernel(const Shape&, const Layout& from, const Layout& to, Device&)> change_layout =
      {};
  // Adds f32 memory of the device to other memory of the same size, with the bits of the CPU.
  // Without it, or where `adds_exactly` is false, the CPU adds the gradients of lanes.
  std::function<void(const Memory& from, const Memory& into)> add = {};
  std::function<bool(const Device&)> adds_exactly = {};
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
  // Chooses layouts, given the present layouts of the inputs. Without it, all are row-major.
  std::function<LayoutChoice(const Graph&, const Node&, const std::vector<Layout>&)> layouts = {};
  std::string device = "cpu";  // the kind of device that it is for
  // Alternative to `make` and `layouts` on the CPU, for an op that computes each element of its one
  // output from the same elements of one to three inputs, all f32, broadcast as in NumPy. It is
  // fused with adjacent element-wise ops into one pass over memory. Called on several threads for
  // arbitrary parts.
  std::function<void(const ElementRun&)> elements = {};
};

// Replaces a kernel that the program registered earlier for that op and kind of device. Throws if
// one comes with Artel, or if the definition has neither `make` nor `elements`, or both.
void register_kernel(KernelDefinition definition);
// True if the op has a kernel for this device.
bool has_kernel(const Device& device, std::string_view op);
// Null for a kind that has only kernels of ops.
const DeviceTraits* find_traits(const Device& device);
// Throws for an op that has no kernel for this device.
const KernelDefinition& find_kernel(const Device& device, std::string_view op);

}  // namespace artel
