// Reads and writes machine files, TOML files that describe the machines of a plan.
//
//   about = "a lab"
//   [[machine]]
//   name = "desktop"
//   count = 8
//   cores = 8
//   flops = "400 GFLOP/s"
//   memory = "32 GiB"
//   memory_bandwidth = "30 GB/s"
//   network = "1 Gbit/s"
//   latency = "60 us"
//
// docs/planning.md lists all keys.
#pragma once

#include <filesystem>
#include <string_view>

#include "artel/plan/machines/machines.h"

namespace artel::plan {

// `name` is the file name in messages, which also give the line. Throws for unknown keys, wrong
// units, speeds of 0, missing switches, and switches that do not form a tree.
Machines parse_machines(std::string_view text, std::string_view name);

// Loads a file if `name` ends with .toml, otherwise one of the machine files included in Artel.
Machines machines_by_name(const std::string& name);

// Names of the machine files included in Artel.
std::vector<std::string> known_machines();

// The inverse of parse_machines.
std::string to_toml(const Machines& machines);

}  // namespace artel::plan
