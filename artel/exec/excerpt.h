// The part of a plan that one of several workers runs.
//
// Kernels, fused groups and layouts are those of the whole plan, so a part computes the bits of the
// whole. Memory is planned anew: for the kernels of the part, and for values that come from other
// parts and go to them.
//
//   artel::KernelChoices choices;
//   artel::ModelGraph step = artel::training_graph(model, {artel::DType::f32, {64, 784}},
//                                                  {artel::DType::i32, {64}},
//                                                  artel::loss_by_name("cross_entropy"));
//   artel::Program program(std::move(step.graph), {}, choices);
//   program.restrict_to({artel::ExcerptPiece{.kernels = {0, 1}}});  // its first two kernels
#pragma once

#include <vector>

#include "artel/exec/plan.h"

namespace artel {

struct ExcerptPiece {
  std::vector<int> kernels;     // of the whole plan, in the order in which they run
  std::vector<int> arrivals;    // buffers that other parts fill before it runs
  std::vector<int> departures;  // buffers that other parts read after it has run
};
using Excerpt = std::vector<ExcerptPiece>;

// Buffers keep their numbers; those of other parts are Region::absent. Gradients are those that are
// computed here, in the same order. Throws an internal error if a kernel reads what neither the
// part computes nor arrives.
Plan excerpt_of(const Graph& graph, Plan whole, const Excerpt& excerpt);

// The buffer whose memory a view shows, or the buffer itself.
int viewed(const Plan& plan, int buffer);
// For each buffer the kernel that writes it, or -1.
std::vector<int> writers(const Plan& plan);
// The buffer of a gradient slot.
int buffer_of_slot(const Plan& plan, const GradientSlot& slot);

}  // namespace artel
