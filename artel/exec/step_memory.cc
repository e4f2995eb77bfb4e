#include "artel/exec/step_memory.h"

namespace artel {

StepMemory step_memory(const Program& program) {
  StepMemory memory = {program.plan().activation_bytes, program.plan().gradient_bytes};
  for (const ParameterEntry& entry : program.parameter_entries())
    memory.parameters += static_cast<size_t>(entry.shape.elements()) * sizeof(float);
  return memory;
}

}  // namespace artel
