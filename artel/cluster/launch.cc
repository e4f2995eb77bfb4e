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
#include "artel/comm/file_handle.h"

namespace artel {
namespace {

constexpr double kGraceSeconds = 10;
// Workers of which one has died meet at once or never: all that there are had arrived, or not.
constexpr double kSecondsToBegin = 2;
constexpr int kMostStarts = 3;
// Before a worker is started again; each pause is twice the one before.
constexpr double kFirstPause = 0.25, kLongestPause = 30;

// Signal handlers can only use globals: these are the processes that signals are passed on to.
std::array<std::atomic<pid_t>, 1024> passed_on_to{};

std::atomic<int> has_passed_on{0};         // the last signal that somebody else has sent
std::atomic<bool> interrupts_only{false};  // a termination signal is passed on as an interrupt

void pass_on(int signal) {
  for (const std::atomic<pid_t>& process : passed_on_to)
    if (process > 0) ::kill(process, signal);
}

// While it lives, interrupt and termination signals are passed on to the workers.
class PassOnSignals {
 public:
  explicit PassOnSignals(bool as_interrupts) {
    struct sigaction action {};
    has_passed_on = 0;
    interrupts_only = as_interrupts;
    action.sa_handler = [](int signal) {
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

// A pipe to read this text from, and then its end.
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

// What is open for a process when it starts, besides what all have.
struct Handed {
  int news = -1;  // the end of a pipe for it; -1: none
  int said = -1;  // the file for causes of errors (cluster/launcher.h); -1: none
};

void hand_on(int file, const char* variable) {
  ::unsetenv(variable);  // ours is of no use to it
  if (file < 0) return;
  ::fcntl(file, F_SETFD, 0);
  ::setenv(variable, std::to_string(file).c_str(), 1);
}

// `doors`: of a run that is under way.
pid_t start(const WorkerCommand& worker, const Handed& handed, const std::string& doors) {
  std::vector<char*> arguments;
  for (const std::string& word : worker.arguments)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const comm::FileHandle input = worker.input ? pipe_with(*worker.input) : comm::FileHandle();
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  require(process >= 0, ErrorKind::io, "[{}] cannot start a process: {}", worker.name,
          std::strerror(errno));
  if (process > 0) return process;
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
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "artel: error: [%s] cannot run %s: %s\n", worker.name.c_str(), arguments[0],
               std::strerror(errno));
  ::_exit(127);
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A pipe through which workers tell how they are (cluster/launcher.h).
class News {
 public:
  News() {
    std::array<int, 2> ends{};
    require(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, ErrorKind::io, "pipe: {}",
            std::strerror(errno));
    from_ = comm::FileHandle(ends[0]);
    to_ = comm::FileHandle(ends[1]);
  }
  int handed_on() const { return to_.get(); }
  // Calls handle(process, words) for each line that has arrived; there are at least five words.
  void read(const std::function<void(pid_t, const std::vector<std::string>&)>& handle) {
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

 private:
  comm::FileHandle from_, to_;
  std::string pending_;
};

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

// The processes of a run, from their start until all have ended.
class Supervision {
 public:
  Supervision(const std::vector<WorkerCommand>& workers, bool elastic, int restarts)
      : signals_(elastic), elastic_(elastic), restarts_(restarts) {
    for (const WorkerCommand& worker : workers) places_.push_back({.command = worker});
    for (size_t i = 0; i < places_.size(); ++i) begin(i, {});
  }

  Ending run() {
    while (running() > 0 || awaits_restart()) {
      hear();
      for (size_t i = 0; i < places_.size(); ++i) {
        const pid_t process = passed_on_to[i];
        int status = 0;
        if (process <= 0 || ::waitpid(process, &status, WNOHANG) != process) continue;
        hear();  // its last words
        passed_on_to[i] = 0;
        note_end(places_[i], process, status);
      }
      start_again();
      if (begun_) to_begin_ = Deadline::never();
      // Without the dead one, the others never begin.
      if (running() > 0 && (grace_.passed() || to_begin_.passed())) pass_on(SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const int code = result_ != 0 ? result_ : succeeded_ ? 0 : last_failure_;
    // What was passed on as an interrupt was perhaps something else.
    const int asked = has_passed_on;
    return {code == 128 + SIGINT && asked != 0 ? 128 + asked : code,
            died_ && (!begun_ || unbegun_) && asked == 0};
  }

 private:
  struct Place {
    WorkerCommand command;
    std::string door = {};  // of its process, once that has met the others
    bool left = false;      // to the others
    bool apart = false;     // the others may continue without it
    bool again = false;     // it is not the first process
    int starts = 0;
    Deadline pause = Deadline::never();  // until it is started again
  };

  void begin(size_t i, const std::string& doors) {
    places_[i].pause = Deadline::never();
    places_[i].again = ++places_[i].starts > 1;
    places_[i].door.clear();
    places_[i].apart = false;
    // Those with a file of their own for what they print have their own errors, too.
    const bool shares_output = places_[i].command.output.empty();
    passed_on_to[i] =
        start(places_[i].command,
              {.news = elastic_ ? news_.handed_on() : -1, .said = shares_output ? said_.get() : -1},
              doors);
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
          // One that was started again has another number in the run than the one before it.
          if (!words[4].empty()) places_[i].command.name = words[3] + " " + words[4];
        }
        if (what == "left") places_[i].left = true;
        if (what == "apart") places_[i].apart = true;
        if (what == "unbegun") unbegun_ = true;
      }
    });
  }

  // Where a worker that is started again may find others; those whose processes have ended are left
  // out.
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
      // Those who are left end together: one that does not has been given up by the others.
      if (elastic_ && running() > 0) grace_ = Deadline::after(kGraceSeconds);
      return;
    }
    if (by_signal || met || !place.again) last_failure_ = code;
    if (by_signal && !grace_.passed() && !to_begin_.passed())
      log(LogLevel::error, "{} (process {}) was ended by signal {} ({})", place.command.name,
          process, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (elastic_ && (by_signal || place.apart || (place.again && !met))) {
      if (begun_ && place.starts <= restarts_)
        place.pause = Deadline::after(
            std::min(kLongestPause, kFirstPause * static_cast<double>(1 << (place.starts - 1))));
      if (by_signal && !std::exchange(died_, true)) to_begin_ = Deadline::after(kSecondsToBegin);
      return;
    }
    if (result_ == 0 && (!place.command.expendable || elastic_)) {
      result_ = code;
      grace_ = Deadline::after(kGraceSeconds);
    }
  }

  // Those whose pause is over join the ones that are left.
  void start_again() {
    const std::string doors = doors_to_try();
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
  const int restarts_;
  std::vector<Place> places_;
  std::vector<std::string> doors_;  // of the workers of the run, as last heard
  std::set<std::string> closed_;    // those of workers here that have ended
  int result_ = 0, last_failure_ = 0;
  bool succeeded_ = false, died_ = false, begun_ = false, unbegun_ = false;
  Deadline grace_ = Deadline::never(), to_begin_ = Deadline::never();
};

}  // namespace

int supervise(const std::vector<WorkerCommand>& workers, const SuperviseOptions& options) {
  require(workers.size() <= passed_on_to.size(), ErrorKind::invalid_argument,
          "got {} workers on one machine, expected at most {}", workers.size(),
          passed_on_to.size());
  const bool elastic = std::all_of(workers.begin(), workers.end(),
                                   [](const WorkerCommand& worker) { return worker.expendable; });
  for (int start = 1;; ++start) {
    const Ending ending = Supervision(workers, elastic, options.restarts).run();
    if (ending.code == 0 || !ending.died_before_it_began || start == kMostStarts)
      return ending.code;
    log(LogLevel::warning, "the run had not begun: all workers are started again");
  }
}

std::vector<std::string> own_command() {
  std::vector<std::string> arguments = split(read_file("/proc/self/cmdline"), '\0');
  arguments.pop_back();  // after the last zero
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

}  // namespace artel
