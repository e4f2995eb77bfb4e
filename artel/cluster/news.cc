#include "artel/cluster/news.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {

News::News() {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, ErrorKind::io, "pipe: {}",
          std::strerror(errno));
  from_ = comm::FileHandle(ends[0]);
  to_ = comm::FileHandle(ends[1]);
}

void News::read(const std::function<void(pid_t, const std::vector<std::string>&)>& handle) {
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(from_.get(), buffer.data(), buffer.size())) > 0;)
    pending_.append(buffer.data(), static_cast<size_t>(got));
  for (size_t end = 0; (end = pending_.find('\n')) != pending_.npos;) {
    std::vector<std::string> words = split(pending_.substr(0, end), ' ');
    pending_.erase(0, end + 1);
    words.resize(std::max<size_t>(words.size(), 5));
    handle(static_cast<pid_t>(std::atoi(words[0].c_str())), words);
  }
}

}  // namespace artel
