// A dashboard beside a training: a process of its own, so that nothing that is asked of it can hurt
// the run, and with less right to the processor.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

namespace artel::cli {

// The token of the user's dashboards at addresses of this machine.
std::string own_dashboard_token();
// Where the certificate of the user's dashboards is kept.
std::filesystem::path own_certificate();

class DashboardBeside {
 public:
  // Of the folder of runs; it says where it is found. Does nothing in a process that was started by
  // one which has a dashboard already.
  explicit DashboardBeside(const std::filesystem::path& folder);
  ~DashboardBeside();  // ends it
  DashboardBeside(const DashboardBeside&) = delete;
  DashboardBeside& operator=(const DashboardBeside&) = delete;

 private:
  pid_t process_ = -1;
};

}  // namespace artel::cli
