// One process at a time: an advisory lock on a file.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "artel/base/time.h"

namespace artel {

// Held from construction until destruction or the end of the process, however it ends. The
// constructor creates the file if needed. Excludes other processes, and other locks in this
// process. The file stays behind and names the process and the host of the last holder; a long wait
// is logged with them. Throws an Error of kind timeout if the deadline passes, of kind unsupported
// on file systems without locks, and of kind io if the file cannot be opened or locked.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path, Deadline deadline = Deadline::never());
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // Takes the lock from whoever has it, such as a process that was stopped and has been replaced.
  // It learns so from `held`.
  static std::unique_ptr<FileLock> take_over(const std::filesystem::path& path);
  // The process and host that hold the lock of a file, without touching it; nothing if no process
  // of this machine does.
  static std::optional<std::string> holder_of(const std::filesystem::path& path);
  // Whether nobody has taken it over and the file is still there.
  bool held() const;

 private:
  FileLock(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

}  // namespace artel
