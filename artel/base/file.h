// Files: whole reads with a limit, read-only maps, and writes that never leave half a file behind.
// Every failure is an Error of kind io or not_found that names the path and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace artel {

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

// A view of a file, unmapped by the destructor. Movable. The pages are private: whoever casts the
// const away (a Tensor may) changes its own copy of a page, never the file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Writes the parts to a temporary file beside `path`, syncs it, and renames it over `path`: after a
// crash the old or the new file is there, never a mixture.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Makes renames within a folder survive a crash.
void sync_folder(const std::filesystem::path& folder);

}  // namespace artel
