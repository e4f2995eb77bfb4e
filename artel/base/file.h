// Files: whole reads with a limit, read-only maps, and writes that never leave half a file behind.
// Every failure is an Error of kind io or not_found that names the path and the system's reason.
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

// Files are regular ones: a pipe, from which nothing may ever come, is refused.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

// The last bytes of a file, `most` at most.
std::string read_end(const std::filesystem::path& path, uint64_t most);

// Opens a regular file, or makes it: neither follows a link, which somebody may have put there to
// have another file changed, nor waits at a pipe. `flags` are those of open(2).
int open_without_following(const std::filesystem::path& path, int flags, unsigned mode = 0644);

// Calls `use` with the content of a file in its order, some of it at a time.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::span<const std::byte>)>& use);

// A view of a file, unmapped by the destructor. Movable. The pages are private: writing through a
// const_cast (as a Tensor may) changes a private copy of the page, never the file.
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

// A file that is written piece by piece under a temporary name beside `path`, synced, and renamed
// over `path`: after a crash either the old or the new file is there, never a mixture. Without
// `finish`, the destructor removes what was written.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The disk begins to write now and then, so that little is left for `finish` to wait for.
  void write(std::span<const std::byte> bytes);
  void finish(unsigned mode = 0644);

  uint64_t bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::string temporary_;
  int file_ = -1;
  uint64_t bytes_ = 0;    // that were written,
  uint64_t flushed_ = 0;  // and of these, that the disk has begun with
};

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts, unsigned mode = 0644);
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           unsigned mode = 0644);

// Makes renames within a folder survive a crash.
void sync_folder(const std::filesystem::path& folder);

}  // namespace artel
