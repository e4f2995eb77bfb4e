// Asks a dashboard elsewhere.
#pragma once

#include <string>

#include "artel/run/live_view.h"

namespace artel::dashboard {

struct RemoteRun {
  std::string name;
  LiveView view;
};

// What a run of the dashboard at HOST:PORT is doing; without a name, that of the newest one which
// is being trained. Throws an Error of kind communication if nobody answers there, and not_found
// if there is no such run.
RemoteRun look_at(const std::string& address, const std::string& token, const std::string& run);

}  // namespace artel::dashboard
