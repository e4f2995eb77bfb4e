// An append-only file of records.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace artel {

// Buffers records in memory until they are flushed. A flush that fails, for example on a full disk,
// leaves the file unchanged, and the next flush retries, so the file always ends with a complete
// record. At most 64 MiB are buffered; further records are dropped. The destructor flushes. Not
// thread safe.
class AppendedFile {
 public:
  // Creates the file if needed. The constructor, `flush`, and `sync` throw an Error of kind io.
  explicit AppendedFile(std::filesystem::path path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  void append(std::string_view record);
  void flush();  // records survive a crash of the process
  void sync();   // records survive a crash of the machine

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string waiting_;
  int file_;
};

}  // namespace artel
