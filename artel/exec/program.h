// A compiled graph.
//
// A Program is immutable and knows no parameters: it says in which layouts it wants them. A Frame
// is the memory of one run; several frames of one program may run at the same time on different
// threads, and a run always gives the same bits for the same inputs, parameters and context.
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
#include "artel/exec/excerpt.h"
#include "artel/exec/parameters.h"
#include "artel/exec/plan.h"

namespace artel {

struct RecomputeChoice;

struct CompileOptions {
  int threads = 1;  // of the pool that a frame will run on
  // The most bytes of activations; 0: no limit. Activations are recomputed to fit, at the least
  // cost.
  size_t memory_limit = 0;
  // Recomputes these if they fit, so that programs for batches of different sizes run the same
  // nodes. Null: the cheapest that fit.
  std::shared_ptr<const RecomputeChoice> recompute = nullptr;
  // Runs there what it has kernels for (exec/plan.h).
  Device* device = &cpu();
  LaneCounts lanes = {};
};

// Whatever is recomputed, the limit is too low: it takes at least `needed` bytes.
class MemoryLimitError : public Error {
 public:
  MemoryLimitError(size_t limit, size_t needed);
  size_t needed() const { return needed_; }

 private:
  size_t needed_;
};

// What one planned kernel of a run took, for profiles and traces.
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
  // Whether it computes an output of the graph; a part of a program may not.
  bool computes(std::string_view output) const;
  // Parameters and states with the layouts of this program, parameters in the order of gradients.
  std::vector<ParameterEntry> parameter_entries() const;

  struct RunOptions {
    StepContext context;
    // The part of the plan to run. A frame may be run in parts, one after another and with the same
    // context, whatever runs on other frames in between: as the forward pass, up to
    // plan().forward_end, and the backward pass later.
    KernelRange part = {};
    // Throw at the first kernel whose output is not finite, naming the layer.
    bool check_numbers = false;
    // Throw at the first kernel that reads what nobody wrote, leaves part of its output unwritten,
    // or writes where it may not (exec/memory_marks.h).
    bool check_memory = false;
    // Called after each kernel with its index and duration. Absent: no clock is read.
    std::function<void(const KernelTiming&)> timing;
    // Called after each kernel with its index: after some of them, gradients are final.
    std::function<void(int kernel)> after_kernel;
  };
  // Throws if the frame has not been run up to where the part begins.
  void run(Frame& frame, ThreadPool& pool, const RunOptions& options) const;

  // A lane of several that run together. Their frames are of programs that match.
  struct Lane {
    Frame& frame;
    StepContext context;
    int64_t samples;
  };
  // Whether lanes of the two programs may run together: they have the same kernels, made for other
  // numbers of samples.
  static bool match(const Program& a, const Program& b);
  // Runs whole programs kernel by kernel, all lanes at a time where a kernel can do that. Each lane
  // gets the bits of `run`, with one exception: where GradientSlot::only_sum is set, the first lane
  // of each subtree gets the sum, added in its order, and the others get nothing of use.
  // options.context, `part` and `check_memory` are ignored.
  static void run_lanes(std::span<const Lane> lanes, std::span<const LaneSubtree> subtrees,
                        ThreadPool& pool, const RunOptions& options);

 private:
  friend class Frame;
  friend class LaneGroup;
  void fit_into(const CompileOptions& options, KernelChoices& choices);

  Graph graph_;
  Plan plan_;
  std::shared_ptr<const RecomputeChoice> recomputed_;
  std::vector<size_t> constant_offsets_;  // by buffer
  Memory constants_;
};

class Frame {
 public:
  // `parameters` must have the names, shapes and layouts of the program and outlive the frame.
  // `gradients` is memory of the processor of plan().gradient_bytes bytes; absent: the frame's own.
  // `lender` has what `parameters` has not.
  Frame(const Program& program, Parameters& parameters, Memory gradients = {},
        Parameters* lender = nullptr);

  const Program& program() const { return program_; }

  // Copies a row-major tensor into an input; throws for an unknown name or another shape or type. A
  // run may reuse the memory of its inputs: set all of them before each run, and none within. An
  // input that the program does not read is ignored.
  void set_input(std::string_view name, const Tensor& value);
  // A row-major copy of an output of the graph.
  Tensor output(std::string_view name) const;
  // The value of a scalar output, without a copy.
  float scalar(std::string_view name) const;
  // The memory of a buffer of the plan, on the processor, between two parts of a run: what arrives
  // from elsewhere, or is needed there.
  std::span<std::byte> buffer(int id) const;
  std::span<float> gradients();
  // From now on, gradients go there (plan().gradient_bytes bytes). A run that has begun to compute
  // them cannot go on.
  void bind_gradients(const Memory& gradients);

 private:
  friend class Program;
  friend class LaneGroup;
  // Behind the last activation, where check_memory sees what was written too far.
  static constexpr size_t kTail = 4096;
  std::vector<std::span<std::byte>> memory() const;
  const std::byte* output_memory(std::string_view name, ValueId& value) const;
  void bind_arguments();

  const Program& program_;
  std::map<Device*, Memory> activations_;
  Memory gradients_;
  std::vector<std::byte*> pointers_;                // by buffer: addresses on its device
  std::vector<std::vector<std::byte*>> arguments_;  // by kernel: inputs, then outputs
  int next_ = 0;                                    // the kernel at which the next part begins
};

}  // namespace artel
