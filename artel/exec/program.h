// A compiled graph.
//
// A Program is immutable and knows no parameters: it says in which layouts it wants them. A Lane is
// the memory of one run; several lanes of one program may run at the same time on different
// threads, and a lane always gives the same bits for the same inputs, parameters and context.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/exec/parameters.h"
#include "artel/exec/plan.h"

namespace artel {

struct CompileOptions {
  int threads = 1;  // of the pool that a lane will run on
  // The most bytes of activations; 0: no limit. Activations are recomputed to fit, at the least
  // cost.
  size_t memory_limit = 0;
};

// No choice of what to recompute keeps the limit: at least `needed` bytes would do.
class MemoryLimitError : public Error {
 public:
  MemoryLimitError(size_t limit, size_t needed);
  size_t needed() const { return needed_; }

 private:
  size_t needed_;
};

// What one step of a run took, for profiles and traces.
struct StepTiming {
  int step;
  double seconds;
};

class Lane;

class Program {
 public:
  // `choices` may be extended by tuning. Throws if the graph cannot be compiled or does not fit.
  Program(Graph graph, const CompileOptions& options, KernelChoices& choices);

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  // Parameters and states with the layouts of this program; trained ones in the order of gradients.
  std::vector<ParameterEntry> parameter_entries() const;

  struct RunOptions {
    StepContext context;
    // Throw at the first step whose output is not finite, naming the layer.
    bool check_numbers = false;
    // Throw at the first step that reads what nobody wrote, leaves part of its output, or writes
    // what is not its own (exec/memory_marks.h).
    bool check_memory = false;
    // Called after each step with its index and duration. Absent: no clock is read.
    std::function<void(const StepTiming&)> timing;
    // Called after the step with which some gradients became final.
    std::function<void(int step)> after_step;
  };
  void run(Lane& lane, ThreadPool& pool, const RunOptions& options) const;

 private:
  friend class Lane;
  void fit_into(const CompileOptions& options, KernelChoices& choices);

  Graph graph_;
  Plan plan_;
  std::vector<size_t> constant_offsets_;  // by buffer
  std::shared_ptr<std::byte> constants_;
};

class Lane {
 public:
  // `parameters` must have the names, shapes and layouts of the program and outlive the lane.
  // `gradients` is memory of plan().gradient_bytes bytes, or null: the lane then owns it.
  Lane(const Program& program, Parameters& parameters, std::byte* gradients = nullptr);

  // Copies a row-major tensor into an input; throws for an unknown name or another shape or type. A
  // run may reuse the memory of its inputs: set all of them before each run.
  void set_input(std::string_view name, const Tensor& value);
  // A row-major copy of an output of the graph.
  Tensor output(std::string_view name) const;
  // The value of a scalar output, without a copy.
  float scalar(std::string_view name) const;
  std::span<float> gradients();
  // From the next run on, gradients go there (plan().gradient_bytes bytes).
  void bind_gradients(std::byte* gradients);

 private:
  friend class Program;
  // Behind the last activation, where check_memory sees what was written too far.
  static constexpr size_t kTail = 4096;
  std::vector<std::span<std::byte>> memory() const;
  const std::byte* output_memory(std::string_view name, ValueId& value) const;
  void bind_arguments();

  const Program& program_;
  std::shared_ptr<std::byte> activations_, own_gradients_;
  std::byte* gradients_;
  std::vector<std::byte*> pointers_;                // by buffer
  std::vector<std::vector<std::byte*>> arguments_;  // by step: inputs, then outputs
};

}  // namespace artel
