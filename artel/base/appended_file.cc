#include "artel/base/appended_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"

namespace artel {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 20;

}  // namespace

AppendedFile::AppendedFile(std::filesystem::path path)
    : path_(std::move(path)), file_(open_without_following(path_, O_WRONLY | O_CREAT | O_APPEND)) {}

AppendedFile::~AppendedFile() {
  try {
    flush();
  } catch (const Error& error) {
    log(LogLevel::warning, "{}", error.what());
  }
  ::close(file_);
}

void AppendedFile::append(std::string_view record) {
  if (waiting_.size() + record.size() <= kMostWaiting) waiting_ += record;
}

void AppendedFile::flush() {
  const off_t end = ::lseek(file_, 0, SEEK_END);
  for (size_t done = 0; done < waiting_.size();) {
    const ssize_t written = ::write(file_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      if (end >= 0) (void)!::ftruncate(file_, end);
      fail(ErrorKind::io, "[{}] cannot write: {}", path_.string(), std::strerror(reason));
    }
    done += static_cast<size_t>(written);
  }
  waiting_.clear();
}

void AppendedFile::sync() {
  flush();
  require(::fdatasync(file_) == 0, ErrorKind::io, "[{}] cannot sync: {}", path_.string(),
          std::strerror(errno));
}

}  // namespace artel
