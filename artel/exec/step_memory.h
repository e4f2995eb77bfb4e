// How much memory a step of a compiled graph takes.
#pragma once

#include <cstddef>

#include "artel/exec/program.h"

namespace artel {

struct StepMemory {
  size_t activations = 0;  // of one lane, inputs and workspaces included
  size_t gradients = 0;    // of one lane, observed statistics included
  size_t parameters = 0;   // of the worker: parameters and states

  size_t total() const { return activations + gradients + parameters; }
};

// With one lane, and without what an optimizer keeps.
StepMemory step_memory(const Program& program);

}  // namespace artel
