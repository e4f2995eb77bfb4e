// A dashboard that runs during a training, in a separate low-priority process, so that requests
// cannot affect the run.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace artel::cli {

// The token of the user's dashboards at addresses of this machine.
std::string own_dashboard_token();
// The path of the certificate of the user's dashboards.
std::filesystem::path own_certificate();

class DashboardBeside {
 public:
  // Serves a folder of runs and prints its address. Does nothing if a parent process already has a
  // dashboard.
  explicit DashboardBeside(const std::filesystem::path& folder);
  ~DashboardBeside();  // ends it
  DashboardBeside(const DashboardBeside&) = delete;
  DashboardBeside& operator=(const DashboardBeside&) = delete;

 private:
  pid_t process_ = -1;
};

}  // namespace artel::cli
