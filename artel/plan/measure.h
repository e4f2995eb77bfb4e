// Measures and caches the time of each node of a graph on this machine.
#pragma once

#include <filesystem>
#include <vector>

#include "artel/exec/program.h"
#include "artel/plan/kernel_work.h"

namespace artel::plan {

// A kernel, the graph's nodes that it computes, and its work.
struct KernelTime {
  std::vector<NodeId> nodes;
  KernelWork work;
  double seconds = 0;
};

// Compiles the graph for one core, runs it on random numbers, first once and then `runs` times, and
// takes the lower quartile of each kernel's processor time: the fastest run is rarer than a usual
// one, and the slowest ones lost their caches to other programs.
std::vector<KernelTime> measured_kernels(const Graph& graph, const KernelChoices& choices,
                                         int runs = 5);

// The seconds of each node by measured kernels; the time of a fused kernel is divided among its
// nodes. With a `folder`, results are cached there by graph and processor.
std::vector<double> measured_node_seconds(const Graph& graph, const KernelChoices& choices,
                                          const std::filesystem::path& folder = {});

}  // namespace artel::plan
