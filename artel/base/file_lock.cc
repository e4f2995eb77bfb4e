#include "artel/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"

namespace artel {
namespace {

// Who holds the lock writes its process id into the file.
void sign(int file) {
  const std::string id = std::to_string(::getpid());
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, id.data(), id.size(), 0);
}

std::string holder(int file) {
  char id[20];
  const ssize_t size = ::pread(file, id, sizeof id, 0);
  return size > 0 ? "process " + std::string(id, static_cast<size_t>(size)) : "another process";
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, Deadline deadline)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  require(file_ >= 0, ErrorKind::io, "[{}] cannot open: {}", path.string(), std::strerror(errno));
  constexpr double kPatience = 2;
  const auto begin = Clock::now();
  bool told = false;
  try {
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      require(errno == EWOULDBLOCK || errno == EINTR, ErrorKind::io, "[{}] cannot lock: {}",
              path.string(), std::strerror(errno));
      require(!deadline.passed(), ErrorKind::timeout, "[{}] {} holds the lock", path.string(),
              holder(file_));
      if (!told && seconds_between(begin, Clock::now()) > kPatience) {
        log(LogLevel::info, "{}: waiting for {}, which holds the lock", path.string(),
            holder(file_));
        told = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    sign(file_);
  } catch (...) {
    ::close(file_);
    throw;
  }
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace artel
