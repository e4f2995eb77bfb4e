// The description of this machine that `artel plan --measure` saved.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "artel/graph/graph.h"
#include "artel/plan/machines/machines.h"

namespace artel::plan {

// Path of the machine file in the data folder.
std::filesystem::path own_machine_file(const std::filesystem::path& data_folder);
// Empty if the machine was not measured. Throws if the file is damaged.
std::optional<Machines> own_machine(const std::filesystem::path& data_folder);

// Seconds of each node on one core of this machine. Uses the measured speeds of ops if there are
// any, otherwise a rough processor model (graph/cost.h).
std::vector<double> own_node_seconds(const Graph& graph, const std::filesystem::path& data_folder);

}  // namespace artel::plan
