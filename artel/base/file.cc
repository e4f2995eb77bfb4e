#include "artel/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr size_t kFlushBytes = size_t{8} << 20;

[[noreturn]] void fail_io(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  fail(code == ENOENT ? ErrorKind::not_found : ErrorKind::io, "[{}] cannot {}: {}", path.string(),
       action, std::strerror(code));
}

// Closes the descriptor when it goes out of scope.
struct Descriptor {
  int fd;
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_io(path, "write");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

// Opens a regular file with O_NONBLOCK, because opening a pipe would block until a process writes
// to it.
int open_regular(const std::filesystem::path& path, struct stat& info) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) fail_io(path, "open");
  if (::fstat(file.fd, &info) != 0) fail_io(path, "read the size");
  require(S_ISREG(info.st_mode), ErrorKind::io, "[{}] is not a regular file", path.string());
  return std::exchange(file.fd, -1);
}

}  // namespace

void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::span<const std::byte>)>& use) {
  struct stat info {};
  const Descriptor file(open_regular(path, info));
  std::byte buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_io(path, "read");
    }
    if (n == 0) return;
    use({buffer, static_cast<size_t>(n)});
  }
}

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  std::string content;
  read_pieces(path, [&](std::span<const std::byte> piece) {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    require(content.size() <= max_bytes, ErrorKind::corrupt, "[{}] larger than {} bytes",
            path.string(), max_bytes);
  });
  return content;
}

std::string read_end(const std::filesystem::path& path, uint64_t most) {
  struct stat info {};
  const Descriptor file(open_regular(path, info));
  const auto size = static_cast<uint64_t>(info.st_size);
  std::string text(std::min(size, most), '\0');
  const ssize_t got =
      ::pread(file.fd, text.data(), text.size(), static_cast<off_t>(size - text.size()));
  if (got < 0) fail_io(path, "read");
  text.resize(static_cast<size_t>(got));
  return text;
}

int open_without_following(const std::filesystem::path& path, int flags, unsigned mode) {
  Descriptor file(::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
  require(file.fd >= 0 || errno != ELOOP, ErrorKind::io,
          "[{}] is a symbolic link, which is not followed here; remove it", path.string());
  if (file.fd < 0) fail_io(path, "open");
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_io(path, "read the size");
  require(S_ISREG(info.st_mode), ErrorKind::io, "[{}] is not a regular file", path.string());
  return std::exchange(file.fd, -1);
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat info {};
  Descriptor file(open_regular(path, info));
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  void* data =
      ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
  if (data == MAP_FAILED) fail_io(path, "map");
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + ".XXXXXX") {
  file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (file_ < 0) fail_io(path_, "create a temporary file in its folder");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kFlushBytes));
    write_all(file_, part, path_);
    bytes_ += part.size();
    bytes = bytes.subspan(part.size());
    if (bytes_ - flushed_ < kFlushBytes) continue;
    // Only a hint, which not every file system supports.
    ::sync_file_range(file_, static_cast<off_t>(flushed_), static_cast<off_t>(bytes_ - flushed_),
                      SYNC_FILE_RANGE_WRITE);
    flushed_ = bytes_;
  }
}

void AtomicFile::finish(unsigned mode) {
  if (::fchmod(file_, mode) != 0) fail_io(path_, "set the mode");
  if (::fsync(file_) != 0) fail_io(path_, "sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io(path_, "rename");
  ::close(std::exchange(file_, -1));
  sync_folder(path_.has_parent_path() ? path_.parent_path() : ".");
}

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts, unsigned mode) {
  AtomicFile file(path);
  for (const auto part : parts) file.write(part);
  file.finish(mode);
}

void sync_folder(const std::filesystem::path& folder) {
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0) fail_io(folder, "open");
  // Some network file systems cannot sync a folder and say so with EINVAL.
  if (::fsync(directory.fd) != 0 && errno != EINVAL) fail_io(folder, "sync");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           unsigned mode) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&part, 1), mode);
}

}  // namespace artel
