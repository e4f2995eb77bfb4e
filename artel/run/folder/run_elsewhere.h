// A run whose folder is on another machine, as seen from the machine of one of its workers.
//
// The worker keeps a small folder in the user's cache, which commands on this machine find by the
// path of the run's folder. It contains the configuration, a lock, and the files of requests for
// traces (run/report/trace_request.h), which the worker answers. It is removed when the worker
// ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "artel/base/file_lock.h"
#include "artel/run/folder/run_folder.h"

namespace artel {

class RunElsewhere {
 public:
  // `folder` is the path of the run's folder on the other machine. Throws an Error of kind io.
  RunElsewhere(const std::filesystem::path& folder, const std::string& machine,
               const std::string& config);
  ~RunElsewhere();
  RunElsewhere(const RunElsewhere&) = delete;
  RunElsewhere& operator=(const RunElsewhere&) = delete;

  const std::string& machine() const { return machine_; }
  // The folder on this machine.
  const RunFolder& here() const { return here_; }

 private:
  const std::string machine_;
  const RunFolder here_;
  std::optional<FileLock> lock_;
};

struct FoundElsewhere {
  std::filesystem::path folder;  // of the run, on the other machine
  std::string machine;
  std::filesystem::path here;
};
// The run in progress at this path on another machine that has a worker on this one; with an empty
// path, any such run. Empty if there is none.
std::optional<FoundElsewhere> find_run_elsewhere(const std::filesystem::path& folder);

// The end of an error about a folder without a run: names the machine of a run found elsewhere.
std::string hint_elsewhere(const std::filesystem::path& folder);

}  // namespace artel
