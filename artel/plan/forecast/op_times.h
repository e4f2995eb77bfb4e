// Times of ops on a kind of machine: the cost model of plans.
//
// A kernel takes its floating-point operations at one speed, the bytes of its inputs and outputs at
// another, the bytes of weights at a third, because they come from further away and are packed or
// transformed, and a constant overhead. The four numbers belong to the class of the op and are
// fitted to measured kernels (`artel plan --measure`). A machine file without measurements has one
// speed for all.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "artel/graph/graph.h"
#include "artel/plan/kernel_work.h"
#include "artel/plan/machines/machines.h"

namespace artel::plan {

// The seconds of each node on a device with all its cores. For measured machines, compiles the
// graph and divides the time of a kernel among its nodes.
std::vector<double> node_seconds(const Graph& graph, const MachineKind& kind);

// The time of a kernel on one core by fitted speeds.
double seconds_of(const KernelWork& work, const OpSpeed& speed);

// A measured kernel.
struct KernelSample {
  KernelWork work;
  double seconds = 0;  // on one core
};

struct OpFit {
  std::map<std::string, OpSpeed> ops;
  double error = 0;  // relative error of a graph's total time, averaged over the graphs
};

// Fits nonnegative speeds by weighted least squares. `graphs` holds the samples of each graph.
OpFit fit_op_speeds(std::span<const std::vector<KernelSample>> graphs);

}  // namespace artel::plan
