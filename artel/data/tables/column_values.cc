#include "artel/data/tables/column_values.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "artel/base/error.h"

namespace artel::data {
namespace {

// A file without a name, of this size. Room on the disk is taken now: a page that finds none later
// would end the process.
int unnamed_file(const std::filesystem::path& folder, size_t bytes) {
  const auto fail_with = [&](int reason) {
    fail(ErrorKind::io,
         "[{}] has no room for {:.1f} GB of a table that is parsed: {}; set ARTEL_DATA to a folder "
         "with room",
         folder.string(), static_cast<double>(bytes) / 1e9, std::strerror(reason));
  };
  int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) {  // not on every file system
    std::string name = (folder / "columns-XXXXXX").string();
    file = ::mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) fail_with(errno);
    ::unlink(name.c_str());
  }
  // Writes to each block where the file system cannot take them at once.
  const int problem = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  if (problem == 0) return file;
  ::close(file);
  fail_with(problem);
  return -1;
}

}  // namespace

std::shared_ptr<std::byte> column_memory(size_t bytes, const std::filesystem::path& folder) {
  if (bytes == 0) return {};
  const int file = folder.empty() ? -1 : unnamed_file(folder, bytes);
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  const int problem = errno;
  if (file >= 0) ::close(file);
  require(memory != MAP_FAILED, ErrorKind::io, "[table] no memory for {:.1f} GB of a column: {}",
          static_cast<double>(bytes) / 1e9, std::strerror(problem));
  return {static_cast<std::byte*>(memory), [bytes](std::byte* at) { ::munmap(at, bytes); }};
}

}  // namespace artel::data
