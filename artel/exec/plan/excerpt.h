// The part of a plan that one of several workers runs.
//
// Kernels, fused groups, and layouts are those of the whole plan, so all parts together compute the
// same bits. Memory is planned again, for the kernels of the part and the values that it exchanges
// with other parts.
//
//   artel::KernelChoices choices;
//   artel::ModelGraph step = artel::training_graph(model, {artel::DType::f32, {64, 784}},
//                                                  {artel::DType::i32, {64}},
//                                                  artel::loss_by_name("cross_entropy"));
//   artel::Program program(std::move(step.graph), {}, choices);
//   program.restrict_to({artel::ExcerptPiece{.kernels = {0, 1}}});  // its first two kernels
#pragma once

#include <vector>

#include "artel/exec/plan/plan.h"

namespace artel {

struct ExcerptPiece {
  std::vector<int> kernels;     // indices in the whole plan, in execution order
  std::vector<int> arrivals;    // buffers received from other parts before the piece runs
  std::vector<int> departures;  // buffers sent to other parts after the piece has run
};
using Excerpt = std::vector<ExcerptPiece>;

// Buffers keep their numbers. Buffers of other parts get Region::absent. The gradients of this part
// keep their order. Throws an internal error if a kernel reads a value that is neither computed by
// this part nor received.
Plan excerpt_of(const Graph& graph, Plan whole, const Excerpt& excerpt);

// The buffer whose memory a view shows, or the buffer itself.
int viewed(const Plan& plan, int buffer);
// The kernel that writes each buffer, or -1.
std::vector<int> writers(const Plan& plan);
// The buffer of a gradient slot.
int buffer_of_slot(const Plan& plan, const GradientSlot& slot);

}  // namespace artel
