#include "artel/plan/forecast/own_machine.h"

#include "artel/plan/forecast/op_times.h"
#include "artel/plan/graph_costs.h"
#include "artel/plan/machines/machine_file.h"

namespace artel::plan {

namespace fs = std::filesystem;

fs::path own_machine_file(const fs::path& data_folder) { return data_folder / "machines.toml"; }

std::optional<Machines> own_machine(const fs::path& data_folder) {
  const fs::path file = own_machine_file(data_folder);
  if (!fs::exists(file)) return std::nullopt;
  return machines_by_name(file.string());
}

std::vector<double> own_node_seconds(const Graph& graph, const fs::path& data_folder) {
  const std::optional<Machines> machines = own_machine(data_folder);
  if (!machines) return estimated_node_seconds(graph);
  MachineKind core = machines->kinds[0];
  core.flops /= static_cast<double>(core.cores);
  core.cores = 1;
  return node_seconds(graph, core);
}

}  // namespace artel::plan
