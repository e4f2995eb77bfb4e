// Statistics of parameter servers for the summary of a run: staleness of pushes, and lost workers.
// Internal to run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "artel/observe/table.h"
#include "artel/ps/report.h"

namespace artel {

void add_server_report(nlohmann::ordered_json& summary, const ps::Report& report);
void add_server_report(observe::Table& table, const ps::Report& report);

}  // namespace artel
