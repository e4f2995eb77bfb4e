#include "artel/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "artel/base/error.h"

namespace artel {
namespace {

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

}  // namespace

std::string read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail_io(path, "open");
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.fd, buffer, sizeof buffer);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail_io(path, "read");
    }
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    require(content.size() <= max_bytes, ErrorKind::corrupt, "[{}] larger than {} bytes",
            path.string(), max_bytes);
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) fail_io(path, "open");
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_io(path, "read the size");
  require(S_ISREG(info.st_mode), ErrorKind::io, "[{}] is not a regular file", path.string());
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

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::string temporary = path.string() + ".XXXXXX";
  Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.fd < 0) fail_io(path, "create a temporary file beside it");
  try {
    for (const auto part : parts) write_all(file.fd, part, path);
    if (::fchmod(file.fd, 0644) != 0) fail_io(path, "set the mode");
    if (::fsync(file.fd) != 0) fail_io(path, "sync");
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_io(path, "rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(folder);
}

void sync_folder(const std::filesystem::path& folder) {
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd < 0) fail_io(folder, "open");
  // Some network file systems cannot sync a folder and say so with EINVAL.
  if (::fsync(directory.fd) != 0 && errno != EINVAL) fail_io(folder, "sync");
}

void write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&part, 1));
}

}  // namespace artel
