// A client for remote dashboards.
#pragma once

#include <filesystem>
#include <string>

#include "artel/run/report/live_view.h"

namespace artel::dashboard {

struct RemoteRun {
  std::string name;
  LiveView view;
};

struct Remote {
  std::string address;  // HOST:PORT, http://HOST:PORT or https://HOST:PORT
  std::string token;
  std::filesystem::path certificate = {};  // trusted certificate; empty uses the system's
};

// The live state of a run; without a name, of the newest run in progress. Throws an Error of kind
// communication if the dashboard does not answer, and not_found for an unknown run.
RemoteRun look_at(const Remote& dashboard, const std::string& run);

}  // namespace artel::dashboard
