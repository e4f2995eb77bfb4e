#include "artel/run/report/server_report.h"

#include <fmt/format.h>

#include "artel/base/json_values.h"

namespace artel {

void add_server_report(nlohmann::ordered_json& summary, const ps::Report& report) {
  if (report.staleness.empty()) return;
  for (const auto& [updates, count] : report.staleness)
    summary["staleness"][std::to_string(updates)] = count;
  for (const auto& [worker, finished] : report.lost)
    summary["lost_workers"][std::to_string(worker)] = finished;
}

void add_server_report(observe::Table& table, const ps::Report& report) {
  if (report.staleness.empty()) return;
  int64_t pushes = 0, updates = 0;
  for (const auto& [missed, count] : report.staleness) {
    pushes += count;
    updates += missed * count;
  }
  table.add({"staleness", fmt::format("{:.2f} updates on average, at most {}",
                                      static_cast<double>(updates) / static_cast<double>(pushes),
                                      report.staleness.rbegin()->first)});
  for (const auto& [worker, finished] : report.lost)
    table.add({fmt::format("lost worker {}", worker), fmt::format("after iteration {}", finished)});
}

}  // namespace artel
