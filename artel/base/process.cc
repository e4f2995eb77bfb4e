#include "artel/base/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"

namespace artel {
namespace {

constexpr size_t kMostOutput = 64 << 10;
constexpr int kCannotStart = 127;

// Runs in the child: executes the program or exits. Uses only calls that are safe after fork.
[[noreturn]] void become(char* const* arguments, const char* folder, int output) {
  const int input = ::open("/dev/null", O_RDONLY);
  if (input < 0 || ::dup2(input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0 ||
      ::chdir(folder) != 0)
    ::_exit(kCannotStart);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // dies with its parent
  ::execvp(arguments[0], arguments);
  ::_exit(kCannotStart);
}

// A child process in its own process group. The destructor kills the group unless `wait` was
// called.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  Child(const Child&) = delete;
  ~Child() {
    if (id_ <= 0) return;
    ::kill(-id_, SIGKILL);
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

  // Returns the exit code. Call after the program has closed its output.
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t id_;
};

struct Pipe {
  int ends[2];
  Pipe() {
    require(::pipe2(ends, O_CLOEXEC) == 0, ErrorKind::io, "cannot create a pipe: {}",
            std::strerror(errno));
  }
  Pipe(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) ::close(ends[i]);
    ends[i] = -1;
  }
};

}  // namespace

bool program_exists(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "", ':'))
    if (!folder.empty() && ::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

ProcessResult run_program(const std::vector<std::string>& arguments,
                          const std::filesystem::path& folder, Deadline deadline,
                          const std::function<void()>& on_tick) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  Pipe pipe;
  const pid_t id = ::fork();
  require(id >= 0, ErrorKind::io, "cannot start {}: {}", arguments[0], std::strerror(errno));
  if (id == 0) become(argv.data(), folder.c_str(), pipe.ends[1]);
  Child child(id);
  pipe.close_end(1);

  ProcessResult result;
  for (;;) {
    require(!deadline.passed(), ErrorKind::timeout, "{} did not end in time", arguments[0]);
    pollfd wait{pipe.ends[0], POLLIN, 0};
    if (::poll(&wait, 1, 100) > 0) {
      char buffer[4096];
      const ssize_t size = ::read(pipe.ends[0], buffer, sizeof buffer);
      if (size == 0) break;
      if (size > 0) result.output.append(buffer, static_cast<size_t>(size));
      if (result.output.size() > kMostOutput)
        result.output.erase(0, result.output.size() - kMostOutput);
    }
    if (on_tick) on_tick();
  }
  result.exit_code = child.wait();
  require(result.exit_code != kCannotStart, ErrorKind::not_found, "cannot start {}", arguments[0]);
  return result;
}

namespace {

// A line of /proc/self/status such as "VmHWM:  1234 kB".
int64_t status_bytes(std::string_view name) {
  const std::string status = read_file("/proc/self/status");
  const size_t at = status.find(name);
  return at == status.npos ? 0
                           : std::strtoll(status.c_str() + at + name.size(), nullptr, 10) * 1024;
}

}  // namespace

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

int64_t memory_bytes() { return status_bytes("VmRSS:"); }

int64_t private_memory_bytes() {
  ::malloc_trim(0);
  return status_bytes("RssAnon:");
}

// Not getrusage, whose maximum includes the process image before exec.
int64_t peak_memory_bytes() { return status_bytes("VmHWM:"); }

}  // namespace artel
