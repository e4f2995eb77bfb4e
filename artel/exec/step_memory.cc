#include "artel/exec/step_memory.h"

#include <algorithm>

#include "artel/exec/plan/memory_plan.h"

namespace artel {

StepMemory step_memory(const Program& program) {
  const Plan& plan = program.plan();
  StepMemory memory = {.activations = plan.activation_bytes,
                       .borrowing = place_without_workspaces(plan).all(),
                       .gradients = plan.gradient_bytes};
  for (const PlannedKernel& kernel : plan.kernels)
    if (kernel.workspace >= 0)
      memory.workspace = std::max(memory.workspace, plan.buffers[kernel.workspace].bytes);
  for (const ParameterEntry& entry : program.parameter_entries())
    memory.parameters += static_cast<size_t>(entry.shape.elements()) * sizeof(float);
  return memory;
}

}  // namespace artel
