// Measures this machine and describes it as a MachineKind.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "artel/exec/program.h"
#include "artel/graph/graph.h"
#include "artel/plan/machines/machines.h"

namespace artel::plan {

struct ThisMachine {
  std::string name;
  int cores = 1;  // available to a worker
};

// Measures arithmetic speed and memory bandwidth, which takes about a second. Reads all other
// properties from the operating system. One machine does not tell the variation between machines.
MachineKind rough_machine(const ThisMachine& machine);

// Also runs training steps of `graphs` on one core and fits the speeds of ops to their kernels.
MachineKind measured_machine(const ThisMachine& machine, std::span<const Graph> graphs,
                             const KernelChoices& choices);

// Bytes per second of the fastest active network card; 0 if unknown. Virtual interfaces do not
// count. `folder` is /sys/class/net.
double network_speed(const std::filesystem::path& folder = "/sys/class/net");

}  // namespace artel::plan
