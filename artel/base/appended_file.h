// A file that grows, record by record.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace artel {

// Records wait in memory until they are flushed. A flush that fails (a full disk) leaves the file
// as it was before, and the next one tries again, so the file always ends with a whole record.
// While nothing can be written, 64 MiB of records are kept; later ones are lost. The destructor
// flushes.
class AppendedFile {
 public:
  // Creates the file if needed. Throws an Error of kind io, as `flush` and `sync` do.
  explicit AppendedFile(std::filesystem::path path);
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  ~AppendedFile();

  void append(std::string_view record);
  void flush();  // a crash of the process loses nothing any more
  void sync();   // a crash of the machine neither

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::string waiting_;
  int file_;
};

}  // namespace artel
