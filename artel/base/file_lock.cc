#include "artel/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/text.h"

namespace artel {
namespace {

// Writes this process's name into the lock file.
void sign(int file) {
  const std::string name = fmt::format("process {} on host {}\n", ::getpid(), host_name());
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, name.data(), name.size(), 0);
}

constexpr auto kPause = std::chrono::milliseconds(20);

// Waits briefly for a new holder to write its name.
std::string holder(int file) {
  for (const Deadline deadline = Deadline::after(1);; std::this_thread::sleep_for(kPause)) {
    char name[320];
    const ssize_t size = ::pread(file, name, sizeof name, 0);
    const std::string_view text = trim({name, size > 0 ? static_cast<size_t>(size) : 0});
    if (!text.empty()) return std::string(text);
    if (deadline.passed()) return "another process";
  }
}

int open_lock(const std::filesystem::path& path) {
  return open_without_following(path, O_RDWR | O_CREAT);
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, Deadline deadline)
    : path_(path), file_(open_lock(path)) {
  constexpr double kPatience = 2;
  const auto begin = Clock::now();
  bool told = false;
  try {
    for (;;) {
      if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
        if (held()) break;
        // Taken over or removed between opening and locking.
        ::close(file_);
        file_ = -1;
        file_ = open_lock(path);
        continue;
      }
      require(errno != ENOLCK && errno != EOPNOTSUPP, ErrorKind::unsupported,
              "[{}] cannot lock: {}", path.string(), std::strerror(errno));
      require(errno == EWOULDBLOCK || errno == EINTR, ErrorKind::io, "[{}] cannot lock: {}",
              path.string(), std::strerror(errno));
      require(!deadline.passed(), ErrorKind::timeout, "[{}] {} holds the lock", path.string(),
              holder(file_));
      if (!told && seconds_between(begin, Clock::now()) > kPatience) {
        log(LogLevel::info, "{}: waiting for {}, which holds the lock", path.string(),
            holder(file_));
        told = true;
      }
      std::this_thread::sleep_for(kPause);
    }
    sign(file_);
  } catch (...) {
    if (file_ >= 0) ::close(file_);
    throw;
  }
}

std::unique_ptr<FileLock> FileLock::take_over(const std::filesystem::path& path) {
  std::string temporary = path.string() + ".XXXXXX";
  const int file = ::mkostemp(temporary.data(), O_CLOEXEC);
  require(file >= 0, ErrorKind::io, "[{}] cannot create a temporary file in its folder: {}",
          path.string(), std::strerror(errno));
  std::unique_ptr<FileLock> lock(new FileLock(path, file));
  sign(file);
  if (::fchmod(file, 0644) != 0 || ::flock(file, LOCK_EX | LOCK_NB) != 0 ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    fail(ErrorKind::io, "[{}] cannot take over the lock: {}", path.string(), std::strerror(reason));
  }
  return lock;
}

std::optional<std::string> FileLock::holder_of(const std::filesystem::path& path) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISREG(there.st_mode)) return {};
  const std::string place =
      fmt::format(" {:02x}:{:02x}:{} ", major(there.st_dev), minor(there.st_dev), there.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") == std::string::npos || line.find(place) == std::string::npos) continue;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return "another process";
    const std::string name = holder(file);
    ::close(file);
    return name;
  }
  return {};
}

bool FileLock::held() const {
  struct stat own {
  }, there{};
  return ::fstat(file_, &own) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

FileLock::~FileLock() { ::close(file_); }

}  // namespace artel
