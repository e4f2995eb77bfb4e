// The work of one kernel of a compiled graph, as far as its time depends on it.
//
//   artel::KernelChoices choices;
//   const artel::Plan plan = artel::make_plan(graph, 1, choices);
//   for (const artel::PlannedKernel& kernel : plan.kernels)
//     artel::println("{} bytes", artel::plan::work_of(graph, plan, kernel).bytes);
#pragma once

#include <string>

#include "artel/exec/plan/plan.h"

namespace artel::plan {

struct KernelWork {
  std::string op_class = {};
  double flops = 0;
  double bytes = 0;         // of inputs and outputs, without weights
  double weight_bytes = 0;  // of parameters that it reads and gradients that it writes
};

// Ops that kernels of about the same speed compute: "product", "recurrence", "normalisation",
// "pooling", "attention", "attention_backward", "convolution_1x1", "convolution_3x3" (with stride
// 1), "grouped_convolution", "convolution" (all others), the same four with "_weights" for
// gradients of weights, and "other".
std::string op_class(const Graph& graph, const Node& node);

// Copies and chains of element-wise ops are of class "other".
KernelWork work_of(const Graph& graph, const Plan& plan, const PlannedKernel& kernel);

}  // namespace artel::plan
