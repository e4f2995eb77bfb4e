#include "artel/cluster/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"

namespace artel {
namespace {

constexpr double kGraceSeconds = 10;

// Signal handlers reach only what is global: the processes that signals are passed on to.
std::array<std::atomic<pid_t>, 1024> passed_on_to{};

void pass_on(int signal) {
  for (const std::atomic<pid_t>& process : passed_on_to)
    if (process > 0) ::kill(process, signal);
}

// While it lives, interrupt and termination signals are passed on to the workers.
class PassOnSignals {
 public:
  PassOnSignals() {
    struct sigaction action {};
    action.sa_handler = pass_on;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~PassOnSignals() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    for (std::atomic<pid_t>& process : passed_on_to) process = 0;
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

pid_t start(const WorkerCommand& worker) {
  std::vector<char*> arguments;
  for (const std::string& word : worker.arguments)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  require(process >= 0, ErrorKind::io, "[{}] cannot start a process: {}", worker.name,
          std::strerror(errno));
  if (process > 0) return process;
  // A process group of its own: a terminal's Ctrl-C reaches workers once, through us.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  if (!worker.output.empty()) {
    const int file = ::open(worker.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || ::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) ::_exit(126);
  }
  for (const auto& [name, value] : worker.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "artel: error: [%s] cannot run %s: %s\n", worker.name.c_str(), arguments[0],
               std::strerror(errno));
  ::_exit(127);
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int supervise(const std::vector<WorkerCommand>& workers) {
  require(workers.size() <= passed_on_to.size(), ErrorKind::invalid_argument,
          "got {} workers on one machine, expected at most {}", workers.size(),
          passed_on_to.size());
  const PassOnSignals signals;
  for (size_t i = 0; i < workers.size(); ++i) passed_on_to[i] = start(workers[i]);
  int result = 0;
  size_t running = workers.size();
  Deadline grace = Deadline::never();
  while (running > 0) {
    for (size_t i = 0; i < workers.size(); ++i) {
      const pid_t process = passed_on_to[i];
      int status = 0;
      if (process <= 0 || ::waitpid(process, &status, WNOHANG) != process) continue;
      passed_on_to[i] = 0;
      --running;
      const int code = exit_code(status);
      if (code == 0) continue;
      if (WIFSIGNALED(status) && !grace.passed())
        log(LogLevel::error, "{} (process {}) was ended by signal {} ({})", workers[i].name,
            process, WTERMSIG(status), strsignal(WTERMSIG(status)));
      if (result == 0 && !workers[i].expendable) {
        result = code;
        grace = Deadline::after(kGraceSeconds);
      }
    }
    if (running > 0 && grace.passed()) pass_on(SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return result;
}

std::vector<std::string> own_command() {
  std::vector<std::string> arguments = split(read_file("/proc/self/cmdline"), '\0');
  arguments.pop_back();  // behind the last zero
  arguments[0] = std::filesystem::read_symlink("/proc/self/exe");
  return arguments;
}

std::vector<std::pair<std::string, std::string>> worker_environment(
    const comm::GroupOptions& options) {
  return {{"ARTEL_TRANSPORT", options.transport},
          {"ARTEL_RANK", std::to_string(options.rank)},
          {"ARTEL_SIZE", std::to_string(options.size)},
          {"ARTEL_ADDRESS", options.address},
          {"ARTEL_TOKEN", options.token},
          {"ARTEL_INTERFACE", options.interface}};
}

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace artel
