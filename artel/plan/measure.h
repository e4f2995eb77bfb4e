// The time of each node of a graph on this machine, measured once and remembered.
#pragma once

#include <filesystem>
#include <vector>

#include "artel/exec/program.h"

namespace artel::plan {

// Compiles the graph for one core, runs it a few times on random numbers and takes the least time
// of each kernel; one of several nodes is shared by them. With a `folder`, what was measured there
// for the same graph and processor is used, and what is measured is kept.
std::vector<double> measured_node_seconds(const Graph& graph, const KernelChoices& choices,
                                          const std::filesystem::path& folder = {});

}  // namespace artel::plan
