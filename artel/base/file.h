// Files: reads with a size limit, read-only maps, and atomic writes. Every failure is an Error of
// kind io or not_found with the path and the system's reason.
//
//   artel::write_file_atomically("notes.txt", "the second run used half the rate\n");
//   const std::string notes = artel::read_file("notes.txt");
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace artel {

// Reads a whole file. Refuses anything but regular files, because reading a pipe could block
// forever.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

// The last `most` bytes of a file, or all of them.
std::string read_end(const std::filesystem::path& path, uint64_t most);

// Opens or creates a regular file. Does not follow links, which another user could plant to
// redirect a write, and does not block on pipes. `flags` are those of open(2).
int open_without_following(const std::filesystem::path& path, int flags, unsigned mode = 0644);

// Calls `use` with consecutive pieces of a file.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::span<const std::byte>)>& use);

// A read-only map of a file; the destructor unmaps it. Pages are private: writing through a
// const_cast (as a Tensor may) changes a copy of the page, never the file.
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

// Writes a file under a temporary name in the same folder; `finish` syncs it and renames it to
// `path`. After a crash, `path` has either the old or the new content. Without `finish`, the
// destructor removes the temporary file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends bytes. Starts writeback periodically, so that `finish` waits only for the rest.
  void write(std::span<const std::byte> bytes);
  void finish(unsigned mode = 0644);

  uint64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int file_ = -1;
  uint64_t bytes_ = 0;    // written so far
  uint64_t flushed_ = 0;  // bytes for which writeback was started
};

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts, unsigned mode = 0644);
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           unsigned mode = 0644);

// Syncs a folder, so that renames within it survive a crash.
void sync_folder(const std::filesystem::path& folder);

}  // namespace artel
