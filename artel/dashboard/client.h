// Asks a dashboard elsewhere.
#pragma once

#include <filesystem>
#include <string>

#include "artel/run/live_view.h"

namespace artel::dashboard {

struct RemoteRun {
  std::string name;
  LiveView view;
};

struct Remote {
  std::string address;  // HOST:PORT, http://HOST:PORT or https://HOST:PORT
  std::string token;
  std::filesystem::path certificate = {};  // to be believed; empty: those that the system believes
};

// What a run of a dashboard is doing; without a name, that of the newest one which is being
// trained. Throws an Error of kind communication if nobody answers there, and not_found
// if there is no such run.
RemoteRun look_at(const Remote& dashboard, const std::string& run);

}  // namespace artel::dashboard
