// An advisory lock on a file, held by one process at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "artel/base/time.h"

namespace artel {

// Held from construction until destruction or the end of the process. The constructor creates the
// file if needed and logs a long wait with the process and host of the holder. Excludes other
// processes and other locks in this process. The file stays behind and names its last holder.
// Throws an Error of kind timeout if the deadline passes, unsupported on file systems without
// locks, and io if the file cannot be opened or locked.
class FileLock {
 public:
  explicit FileLock(const std::filesystem::path& path, Deadline deadline = Deadline::never());
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // Takes the lock from its holder, such as a hung process that has been replaced. The former
  // holder learns this from `held`.
  static std::unique_ptr<FileLock> take_over(const std::filesystem::path& path);
  // The process and host that hold the lock, without opening it for writing. Empty if no process of
  // this machine holds it.
  static std::optional<std::string> holder_of(const std::filesystem::path& path);
  // False after another process took the lock over or removed the file.
  bool held() const;

 private:
  FileLock(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

}  // namespace artel
