// How much memory a step of a compiled graph takes.
//
//   artel::KernelChoices choices;
//   artel::ModelGraph step = artel::training_graph(model, {artel::DType::f32, {64, 784}},
//                                                  {artel::DType::i32, {64}},
//                                                  artel::loss_by_name("cross_entropy"));
//   const artel::Program program(std::move(step.graph), {}, choices);
//   artel::println("{} bytes", artel::step_memory(program).total());
#pragma once

#include <cstddef>

#include "artel/exec/program.h"

namespace artel {

struct StepMemory {
  size_t activations = 0;  // of one frame, inputs and workspaces included
  size_t workspace = 0;    // of these, what the kernel that needs most works in
  size_t gradients = 0;    // of one frame, observed statistics included
  size_t parameters = 0;   // of the worker: parameters and states

  size_t total() const { return activations + gradients + parameters; }
};

// With one frame, and without what an optimizer keeps.
StepMemory step_memory(const Program& program);

}  // namespace artel
