#include "artel/cluster/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/news.h"
#include "artel/comm/connection/file_handle.h"

namespace artel {
namespace {

// Set once by a program that embeds this one (set_own_command); otherwise empty.
struct OwnCommand {
  std::vector<std::string> program, arguments;
};
OwnCommand embedded;

constexpr double kGraceSeconds = 10;
// If a worker dies at the start, the others either have all connected already or never will.
constexpr double kSecondsToBegin = 2;
constexpr int kMostStarts = 3;
// Pauses before a worker is restarted, in seconds. Each pause is twice the previous one.
constexpr double kFirstPause = 0.25, kLongestPause = 30;

// Processes that receive forwarded signals. Global because a signal handler reads it.
std::array<std::atomic<pid_t>, 1024> passed_on_to{};

std::atomic<int> has_passed_on{0};         // the last signal that this process has received
std::atomic<bool> interrupts_only{false};  // forward SIGTERM as SIGINT

void pass_on(int signal) {
  for (const std::atomic<pid_t>& process : passed_on_to)
    if (process > 0) ::kill(process, signal);
}

// Forwards SIGINT and SIGTERM to the workers while it exists, except a SIGTERM after another
// signal: the workers are already stopping, and a second interrupt would keep them from saving.
class PassOnSignals {
 public:
  explicit PassOnSignals(bool as_interrupts) {
    struct sigaction action {};
    has_passed_on = 0;
    interrupts_only = as_interrupts;
    action.sa_handler = [](int signal) {
      if (signal == SIGTERM && has_passed_on != 0) return;
      has_passed_on = signal;
      pass_on(interrupts_only ? SIGINT : signal);
    };
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

// Blocks SIGINT and SIGTERM while it exists. Otherwise a process that is not yet in `passed_on_to`
// would miss a signal.
class HoldSignals {
 public:
  HoldSignals() { ::pthread_sigmask(SIG_BLOCK, &held(), &before_); }
  ~HoldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  static void release() { ::pthread_sigmask(SIG_UNBLOCK, &held(), nullptr); }

 private:
  static const sigset_t& held() {
    static const sigset_t signals = [] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, SIGINT);
      sigaddset(&set, SIGTERM);
      return set;
    }();
    return signals;
  }
  sigset_t before_{};
};

// The reading end of a pipe that contains `text`.
comm::FileHandle pipe_with(const std::string& text) {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, ErrorKind::io, "pipe: {}", std::strerror(errno));
  comm::FileHandle from(ends[0]);
  const comm::FileHandle to(ends[1]);
  require(
      text.size() <= PIPE_BUF && ::write(to.get(), text.data(), text.size()) == std::ssize(text),
      ErrorKind::io, "pipe: {} bytes cannot be written", text.size());
  return from;
}

// File descriptors that a new process inherits in addition to the standard ones; -1 for none.
struct Handed {
  int news = -1;  // writing end of a pipe for status lines
  int said = -1;  // file for causes of errors (cluster/launcher.h)
};

void hand_on(int file, const char* variable) {
  ::unsetenv(variable);  // the value of this process is not valid there
  if (file < 0) return;
  ::fcntl(file, F_SETFD, 0);
  ::setenv(variable, std::to_string(file).c_str(), 1);
}

// Called in a new process. Restores the default signal handlers, clears the parent's process list,
// and unblocks signals.
void forget_signals() {
  for (std::atomic<pid_t>& process : passed_on_to) process = 0;
  for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  HoldSignals::release();
}

// `doors` are the doors of a running training, or "".
pid_t start(const WorkerCommand& worker, const Handed& handed, const std::string& doors,
            const std::function<pid_t()>& fork) {
  std::vector<char*> arguments;
  for (const std::string& word : worker.arguments)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const comm::FileHandle input = worker.input ? pipe_with(*worker.input) : comm::FileHandle();
  const pid_t parent = ::getpid();
  const pid_t process = fork();
  require(process >= 0, ErrorKind::io, "[{}] cannot start a process: {}", worker.name,
          std::strerror(errno));
  if (process > 0) return process;
  forget_signals();
  // Its own process group: a terminal's Ctrl-C reaches workers once, through us.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, handed.news >= 0 ? SIGINT : SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  if (!worker.output.empty()) {
    const int file = ::open(worker.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || ::dup2(file, 1) < 0 || ::dup2(file, 2) < 0) ::_exit(126);
  }
  if (worker.input && ::dup2(input.get(), 0) < 0) ::_exit(126);
  for (const auto& [name, value] : worker.environment) ::setenv(name.c_str(), value.c_str(), 1);
  hand_on(handed.news, kNewsVariable);
  hand_on(handed.said, kSaidVariable);
  ::setenv(kCalledVariable, handed.said >= 0 ? worker.name.c_str() : "", 1);
  if (!doors.empty()) ::setenv(kDoorsVariable, doors.c_str(), 1);
  if (worker.body) ::_exit(worker.body());
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "artel: error: [%s] cannot run %s: %s\n", worker.name.c_str(), arguments[0],
               std::strerror(errno));
  ::_exit(127);
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A file in memory to which each process appends (cluster/launcher.h).
comm::FileHandle file_for_causes() {
  comm::FileHandle file(::memfd_create("causes of errors", MFD_CLOEXEC));
  require(file.get() >= 0 && ::fcntl(file.get(), F_SETFL, O_APPEND) == 0, ErrorKind::io,
          "memfd_create: {}", std::strerror(errno));
  return file;
}

struct Ending {
  int code = 0;
  bool died_before_it_began = false;
};

// Starts the processes of a run and supervises them until all have ended.
class Supervision {
 public:
  Supervision(const std::vector<WorkerCommand>& workers, bool elastic,
              const SuperviseOptions& options)
      : signals_(elastic), elastic_(elastic), options_(options) {
    for (const WorkerCommand& worker : workers) places_.push_back({.command = worker});
    const HoldSignals hold;
    for (size_t i = 0; i < places_.size(); ++i) begin(i, {});
  }

  Ending run() {
    while (running() > 0 || awaits_restart()) {
      hear();
      for (size_t i = 0; i < places_.size(); ++i) {
        const pid_t process = passed_on_to[i];
        int status = 0;
        if (process <= 0 || ::waitpid(process, &status, WNOHANG) != process) continue;
        hear();  // reads the last status lines
        passed_on_to[i] = 0;
        note_end(places_[i], process, status);
      }
      start_again();
      if (begun_) to_begin_ = Deadline::never();
      // The remaining workers wait for the dead one and would never begin.
      if (running() > 0 && (grace_.passed() || to_begin_.passed())) pass_on(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const int code = result_ != 0 ? result_ : succeeded_ ? 0 : last_failure_;
    // A forwarded SIGINT may have been a SIGTERM.
    const int asked = has_passed_on;
    return {code == 128 + SIGINT && asked != 0 ? 128 + asked : code,
            died_ && !begun_ && asked == 0};
  }

 private:
  struct Place {
    WorkerCommand command;
    std::string door = {};  // the worker's door; empty until it has connected to the others
    bool left = false;      // it has left the run
    bool apart = false;     // the others may continue without it
    bool again = false;     // it has been restarted
    int starts = 0;
    Deadline pause = Deadline::never();  // end of the pause before a restart
  };

  void begin(size_t i, const std::string& doors) {
    places_[i].pause = Deadline::never();
    places_[i].again = ++places_[i].starts > 1;
    places_[i].door.clear();
    places_[i].apart = false;
    // Workers with their own output file print all errors there.
    const bool shares_output = places_[i].command.output.empty();
    passed_on_to[i] =
        start(places_[i].command,
              {.news = elastic_ ? news_.handed_on() : -1, .said = shares_output ? said_.get() : -1},
              doors, options_.fork);
  }

  size_t running() const {
    return static_cast<size_t>(
        std::count_if(passed_on_to.begin(), passed_on_to.begin() + std::ssize(places_),
                      [](const std::atomic<pid_t>& process) { return process > 0; }));
  }

  void hear() {
    news_.read([&](pid_t process, const std::vector<std::string>& words) {
      const std::string& what = words[1];
      for (size_t i = 0; i < places_.size(); ++i) {
        if (passed_on_to[i] != process) continue;
        begun_ = true;
        if (what == "met") {
          doors_ = split(words[2], ',');
          places_[i].door = doors_.front();
          // A restarted worker gets a new number in the run.
          if (!words[4].empty()) places_[i].command.name = words[3] + " " + words[4];
        }
        if (what == "left") places_[i].left = true;
        if (what == "apart") places_[i].apart = true;
      }
    });
  }

  // The doors at which a restarted worker can join, except those of ended processes.
  std::string doors_to_try() const {
    std::vector<std::string> doors = doors_;
    std::erase_if(doors, [&](const std::string& door) { return closed_.contains(door); });
    return artel::join(doors, ",");
  }

  bool awaits_restart() const {
    return !doors_to_try().empty() && !ends() &&
           std::any_of(places_.begin(), places_.end(), [](const Place& place) {
             return place.pause.at() != Clock::time_point::max();
           });
  }

  bool ends() const { return succeeded_ || result_ != 0 || has_passed_on != 0; }

  void note_end(Place& place, pid_t process, int status) {
    const int code = exit_code(status);
    const bool by_signal = WIFSIGNALED(status), met = !place.door.empty();
    closed_.insert(place.door);
    place.door.clear();
    if (place.left && code == 0) return;
    if (code == 0) {
      succeeded_ = true;
      // All remaining workers end together. One that still runs has been given up by the others.
      if (elastic_ && running() > 0) grace_ = Deadline::after(kGraceSeconds);
      return;
    }
    if (by_signal || met || !place.again) last_failure_ = code;
    if (by_signal && !grace_.passed() && !to_begin_.passed())
      log(LogLevel::error, "{} (process {}) was killed by signal {} ({})", place.command.name,
          process, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (elastic_ && (by_signal || place.apart || (place.again && !met))) {
      if (begun_ && place.starts <= options_.restarts)
        place.pause = Deadline::after(restart_pause(place.starts));
      if (by_signal && !std::exchange(died_, true)) to_begin_ = Deadline::after(kSecondsToBegin);
      return;
    }
    if (result_ == 0 && (!place.command.expendable || elastic_)) {
      result_ = code;
      grace_ = Deadline::after(kGraceSeconds);
    }
  }

  // Restarts the workers whose pause is over.
  void start_again() {
    const std::string doors = doors_to_try();
    const HoldSignals hold;
    for (size_t i = 0; i < places_.size(); ++i) {
      if (!places_[i].pause.passed()) continue;
      places_[i].pause = Deadline::never();
      if (!doors.empty() && !ends()) begin(i, doors);
    }
  }

  const PassOnSignals signals_;
  News news_;
  const comm::FileHandle said_ = file_for_causes();
  const bool elastic_;
  const SuperviseOptions& options_;
  std::vector<Place> places_;
  std::vector<std::string> doors_;  // last known doors of all workers of the run
  std::set<std::string> closed_;    // doors of local workers that have ended
  int result_ = 0, last_failure_ = 0;
  bool succeeded_ = false, died_ = false, begun_ = false;
  Deadline grace_ = Deadline::never(), to_begin_ = Deadline::never();
};

}  // namespace

double restart_pause(int starts) {
  return std::min(kLongestPause, kFirstPause * std::exp2(starts - 1));
}

int supervise(const std::vector<WorkerCommand>& workers, const SuperviseOptions& options) {
  require(workers.size() <= passed_on_to.size(), ErrorKind::invalid_argument,
          "got {} workers on one machine, expected at most {}", workers.size(),
          passed_on_to.size());
  const bool elastic = std::all_of(workers.begin(), workers.end(),
                                   [](const WorkerCommand& worker) { return worker.expendable; });
  for (int start = 1;; ++start) {
    const Ending ending = Supervision(workers, elastic, options).run();
    if (ending.code == 0 || !ending.died_before_it_began || start == kMostStarts)
      return ending.code;
    log(LogLevel::warning, "a worker died before the run began; restarting all workers");
  }
}

void set_own_command(std::vector<std::string> program, std::vector<std::string> arguments) {
  embedded = {std::move(program), std::move(arguments)};
}

std::vector<std::string> own_command() {
  if (!embedded.program.empty()) return own_command_with(embedded.arguments);
  std::vector<std::string> arguments = split(read_file("/proc/self/cmdline"), '\0');
  arguments.pop_back();  // empty text after the last zero
  arguments.erase(arguments.begin());
  return own_command_with(arguments);
}

std::vector<std::string> own_command_with(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = embedded.program;
  if (command.empty()) command.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
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

}  // namespace artel
