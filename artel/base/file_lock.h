// One process at a time: an advisory lock on a file.
#pragma once

#include <filesystem>

#include "artel/base/time.h"

namespace artel {

// Held from the constructor, which makes the file if there is none, to the destructor or the end of
// the process, however it ends. Excludes other processes and other locks of this one. The file
// stays behind, with the number of the last process; who waits for long says for which. Throws an
// Error of kind timeout if the deadline passes, of kind io if the file cannot be opened or locked.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path, Deadline deadline = Deadline::never());
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int file_;
};

}  // namespace artel
