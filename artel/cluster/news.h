// The launcher's end of the pipe for status lines of workers (cluster/launcher.h).
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "artel/comm/connection/file_handle.h"

namespace artel {

class News {
 public:
  News();
  // The file descriptor for the workers. Closed on exec unless the caller changes that.
  int handed_on() const { return to_.get(); }
  // Calls handle(process, words) for each new line. A line has at least five words.
  void read(const std::function<void(pid_t, const std::vector<std::string>&)>& handle);

 private:
  comm::FileHandle from_, to_;
  std::string pending_;
};

}  // namespace artel
