#include "artel/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "artel/base/error.h"

namespace artel {

FileLock::FileLock(const std::filesystem::path& path, Deadline deadline)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  require(file_ >= 0, ErrorKind::io, "[{}] cannot open: {}", path.string(), std::strerror(errno));
  try {
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      require(errno == EWOULDBLOCK || errno == EINTR, ErrorKind::io, "[{}] cannot lock: {}",
              path.string(), std::strerror(errno));
      require(!deadline.passed(), ErrorKind::timeout, "[{}] another process holds the lock",
              path.string());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  } catch (...) {
    ::close(file_);
    throw;
  }
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace artel
