#include "artel/base/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"

namespace artel {
namespace {

// Not posix_fallocate: on file systems without fallocate, it would overwrite concurrent writes of
// other processes with zeros. There, only the length of the file is set.
bool take_room(int file, size_t bytes) {
  if (::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return true;
  if (errno != EOPNOTSUPP) return false;
  struct stat info = {};
  if (::fstat(file, &info) != 0) return false;
  return static_cast<size_t>(info.st_size) >= bytes ||
         ::ftruncate(file, static_cast<off_t>(bytes)) == 0;
}

}  // namespace

SharedFile::SharedFile(const std::filesystem::path& path, size_t bytes) : bytes_(bytes) {
  const int file = open_without_following(path, O_RDWR | O_CREAT, 0600);
  void* memory = MAP_FAILED;
  if (take_room(file, bytes))
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int why = errno;
  ::close(file);
  require(memory != MAP_FAILED, ErrorKind::io, "[{}] cannot be mapped ({}): {}", path.string(),
          format_bytes(static_cast<double>(bytes)), std::strerror(why));
  data_ = static_cast<std::byte*>(memory);
}

SharedFile::~SharedFile() { ::munmap(data_, bytes_); }

}  // namespace artel
