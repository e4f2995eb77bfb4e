// A compiled graph.
//
// A Program is immutable and does not contain parameters; it defines the layouts it needs. A Frame
// is the memory of one run. Several frames of one program may run at the same time on different
// threads, and a run always gives the same bits for the same inputs, parameters, and context.
//
//   artel::Graph graph;
//   const artel::Value x = graph.input("x", {artel::DType::f32, {4}});
//   graph.set_output("y", artel::relu(x));
//   artel::KernelChoices choices;
//   const artel::Program program(std::move(graph), {}, choices);
//   artel::Parameters none(program.parameter_entries());
//   artel::Frame frame(program, none);
//   artel::ThreadPool pool(1);
//   frame.set_input("x", artel::Tensor::from({4}, std::vector<float>{-1, 0, 1, 2}));
//   program.run(frame, pool, {});
//   const artel::Tensor y = frame.output("y");
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/exec/parameters.h"
#include "artel/exec/plan/excerpt.h"
#include "artel/exec/plan/plan.h"

namespace artel {

struct RecomputeChoice;

struct CompileOptions {
  int threads = 1;  // of the pool that a frame will run on
  // Maximum bytes of activations; 0 means no limit. Activations are recomputed to meet it, at the
  // least cost.
  size_t memory_limit = 0;
  // The activations to recompute, if that is enough to fit, so that programs for different batch
  // sizes run the same nodes. If null, the cheapest choice that fits.
  std::shared_ptr<const RecomputeChoice> recompute = nullptr;
  // The device that runs all nodes for which it has kernels (exec/plan/plan.h). If null,
  // KernelChoices::device.
  Device* device = nullptr;
  LaneCounts lanes = {};
};

// The limit is too low even with recomputation: the program needs at least `needed` bytes.
class MemoryLimitError : public Error {
 public:
  MemoryLimitError(size_t limit, size_t needed);
  size_t needed() const { return needed_; }

 private:
  size_t needed_;
};

// The time of one planned kernel of a run, for profiles and traces.
struct KernelTiming {
  int kernel;
  double seconds;
};

// Planned kernels from `first` to before `last`, or to the end of the plan.
struct KernelRange {
  int first = 0;
  int last = std::numeric_limits<int>::max();
};

// Throws if an output of a kernel that has run in step `step` is not finite.
void check_finite(const Graph& graph, const Plan& plan, const PlannedKernel& planned,
                  const std::vector<std::byte*>& pointers, int64_t step);

class Frame;

// Determines whether a frame has its own memory for the workspaces of its kernels, or uses those of
// another frame (Program::lends).
enum class Workspaces { own, borrowed };

class Program {
 public:
  // `choices` may be extended by tuning. Throws if the graph cannot be compiled or does not fit.
  Program(Graph graph, const CompileOptions& options, KernelChoices& choices);

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  // The activations that are recomputed to fit into the limit; null: none.
  std::shared_ptr<const RecomputeChoice> recomputed() const { return recomputed_; }
  // Restricts the program to `excerpt`. Call before creating frames.
  void restrict_to(const Excerpt& excerpt);
  // True if it computes an output of the graph. A part of a program may not, or only receive it.
  bool computes(std::string_view output) const;
  // The device that runs all nodes for which it has kernels.
  Device& device() const { return *device_; }
  // Parameters and states with the layouts of this program, parameters in the order of gradients.
  std::vector<ParameterEntry> parameter_entries() const;

  struct RunOptions {
    StepContext context;
    // The part of the plan to run. A frame may be run in parts, one after another and with the same
    // context, with runs on other frames in between: for example the forward pass, up to
    // plan().forward_end, and the backward pass later.
    KernelRange part = {};
    // Throw at the first kernel whose output is not finite, naming the layer.
    bool check_numbers = false;
    // Throw at the first kernel that reads uninitialised memory, leaves part of its output
    // unwritten, or writes outside its outputs (exec/memory_marks.h).
    bool check_memory = false;
    // Leaves gradients in the memory of plan().gradient_device. Otherwise they are copied to
    // Frame::gradients at the end of the plan.
    bool leaves_gradients = false;
    // Called after each kernel with its index and duration. Absent: no clock is read.
    std::function<void(const KernelTiming&)> timing;
    // Called after each kernel with its index: after some of them, gradients are final.
    std::function<void(int kernel)> after_kernel;
  };
  // Throws if the frame has not been run up to where the part begins.
  void run(Frame& frame, ThreadPool& pool, const RunOptions& options) const;

  // One of several lanes that run together. The programs of their frames match.
  struct Lane {
    Frame& frame;
    StepContext context;
    int64_t samples;
  };
  // True if lanes of the two programs may run together: they have the same kernels, for different
  // numbers of samples.
  static bool match(const Program& a, const Program& b);
  // True if frames of `borrower` can use the workspaces of one of `lender`. The programs must
  // match.
  static bool lends(const Program& lender, const Program& borrower);
  // Bytes of activations of a frame that borrows its workspaces.
  size_t bytes_without_workspaces() const { return without_workspaces_.all(); }
  // Runs whole programs kernel by kernel, with all lanes at a time if a kernel supports it. Each
  // lane gets the bits of `run`, with one exception: if GradientSlot::only_sum is set, the first
  // lane of each subtree gets the sum, added in the tree's order, and the values of the others are
  // undefined. Frames without workspaces borrow those of the first of the largest lanes. Ignores
  // `context`, `part`, and `check_memory` of the options.
  static void run_lanes(std::span<const Lane> lanes, std::span<const LaneSubtree> subtrees,
                        ThreadPool& pool, const RunOptions& options);

 private:
  friend class Frame;
  friend class LaneGroup;
  void fit_into(const CompileOptions& options, KernelChoices& choices);

  void place_constants();
  void run_kernels(Frame& frame, ThreadPool& pool, const RunOptions& options) const;

  Graph graph_;
  Device* device_;
  Plan plan_;
  Placement without_workspaces_;  // empty if lanes do not run together
  std::shared_ptr<const RecomputeChoice> recomputed_;
  std::vector<size_t> constant_offsets_;  // by buffer
  std::map<Device*, Memory> constants_;
};

class Frame {
 public:
  // `parameters` must have the names, shapes, and layouts of the program and outlive the frame.
  // `gradients` is memory of the processor with plan().gradient_bytes bytes; if empty, the frame
  // allocates its own. `lender` provides values that `parameters` lacks. A frame without workspaces
  // can only be run together with others (Program::run_lanes).
  Frame(const Program& program, Parameters& parameters, Memory gradients = {},
        Parameters* lender = nullptr, Workspaces workspaces = Workspaces::own);

  const Program& program() const { return program_; }

  // Copies a row-major tensor into an input; throws for an unknown name or another shape or type. A
  // run may reuse the memory of its inputs: set all of them before each run, and none within. An
  // input that the program does not read is ignored.
  void set_input(std::string_view name, const Tensor& value);
  // A row-major copy of an output of the graph.
  Tensor output(std::string_view name) const;
  // The value of a scalar output, without a copy.
  float scalar(std::string_view name) const;
  // The processor's memory of a buffer of the plan, for use between two parts of a run: a value
  // that arrives from another worker, or that another worker needs.
  std::span<std::byte> buffer(int id) const;
  std::span<float> gradients();
  // Directs gradients to this memory (plan().gradient_bytes bytes): memory of the processor, or of
  // plan().gradient_device. A run that has begun to compute gradients cannot continue.
  void bind_gradients(const Memory& gradients);

 private:
  friend class Program;
  friend class LaneGroup;
  // Memory after the last activation, where check_memory detects writes beyond it.
  static constexpr size_t kTail = 4096;
  std::vector<std::span<std::byte>> memory() const;
  void bind_leaves(Parameters& parameters, Parameters* lender);
  const std::byte* output_memory(std::string_view name, ValueId& value) const;
  void bind_arguments();
  std::byte* gradient_memory(const Device& device) const;

  const Program& program_;
  std::vector<const Parameters*> resident_;  // that have copies on the program's device
  std::map<Device*, Memory> activations_;
  Memory gradients_;
  Memory device_gradients_;           // if plan().gradient_device is not the processor
  std::vector<std::byte*> pointers_;  // by buffer: addresses on its device
  std::vector<std::vector<std::byte*>> arguments_;  // by kernel: inputs, then outputs
  int next_ = 0;                                    // the kernel at which the next part begins
  bool has_workspaces_ = true;
};

}  // namespace artel
