// Computes the memory that a step of a compiled graph takes.
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
  size_t workspace = 0;    // part of these: the largest workspace of a kernel
  size_t borrowing = 0;    // of a frame that works in the workspaces of another one
  size_t gradients = 0;    // of one frame, observed statistics included
  size_t parameters = 0;   // of the worker: parameters and states

  size_t total() const { return activations + gradients + parameters; }
};

// The memory of one frame, without optimizer state.
StepMemory step_memory(const Program& program);

}  // namespace artel
