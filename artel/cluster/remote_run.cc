#include "artel/cluster/remote_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/cluster/launch.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/news.h"
#include "artel/comm/connection/file_handle.h"

namespace artel {
namespace {

using comm::FileHandle;

constexpr int kConnectionLost = 255;  // ssh's own exit code
constexpr double kFailureSeconds = 5, kStopSeconds = 60;
// Marks a line with the doors of the run, which the launcher reads but does not print.
constexpr std::string_view kDoorsMark =
    "\x1e"
    "artel-doors ";

// A signal handler can only use globals.
std::atomic<int> remote_signals{0}, last_remote_signal{0};

// Counts SIGINT, SIGTERM, and SIGHUP while it exists, except a SIGTERM after another signal, which
// would interrupt workers that are saving. Also ignores SIGPIPE, so that writing to a
// closed pipe is an error instead.
class CountSignals {
 public:
  CountSignals() {
    remote_signals = 0;
    last_remote_signal = 0;
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      if (signal == SIGTERM && remote_signals != 0) return;
      last_remote_signal = signal;
      ++remote_signals;
    };
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
    action.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &action, &pipe_before_);
  }
  ~CountSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  }
  CountSignals(const CountSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
  struct sigaction pipe_before_ {};
};

struct PipeEnds {
  FileHandle read, write;
};

PipeEnds make_pipe() {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC) == 0, ErrorKind::io, "pipe: {}", std::strerror(errno));
  return {FileHandle(ends[0]), FileHandle(ends[1])};
}

// Standard files of a process; -1 inherits those of this process.
struct Files {
  int input = -1, output = -1, error = -1;
};

// Starts a program in its own process group, so that a terminal's Ctrl-C reaches it only through
// this process. It receives the signal `when_orphaned` if this process ends first; 0 means none.
pid_t start_program(const std::vector<std::string>& arguments, const Files& files,
                    int when_orphaned) {
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t process = ::fork();
  require(process >= 0, ErrorKind::io, "cannot start {}: {}", arguments[0], std::strerror(errno));
  if (process > 0) return process;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, when_orphaned);
  ::signal(SIGPIPE, SIG_DFL);
  const std::array given = {files.input, files.output, files.error};
  for (int i = 0; i < std::ssize(given); ++i)
    if (given[i] >= 0 && ::dup2(given[i], i) < 0) ::_exit(126);
  ::execvp(words[0], words.data());
  std::fprintf(stderr, "artel: error: cannot run %s: %s\n", words[0], std::strerror(errno));
  ::_exit(127);
}

// The exit code of a process that has ended.
std::optional<int> ended(pid_t process) {
  int status = 0;
  if (::waitpid(process, &status, WNOHANG) != process) return {};
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Assembles lines from pieces of output.
class Lines {
 public:
  Lines(FileHandle from, std::FILE* to, std::string label)
      : from_(std::move(from)), to_(to), label_(std::move(label)) {
    ::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  }
  int file() const { return from_.get(); }
  bool open() const { return open_; }
  // The doors of the run, as last received.
  const std::string& doors() const { return doors_; }

  void pass_on() {
    std::array<char, 16384> buffer;
    ssize_t got = 0;
    while ((got = ::read(from_.get(), buffer.data(), buffer.size())) > 0)
      pending_.append(buffer.data(), static_cast<size_t>(got));
    open_ = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!open_ && !pending_.empty() && pending_.back() != '\n') pending_ += '\n';
    for (size_t end = 0; (end = pending_.find('\n')) != pending_.npos;) {
      const std::string_view line = std::string_view(pending_).substr(0, end);
      if (line.starts_with(kDoorsMark))
        doors_ = line.substr(kDoorsMark.size());
      else
        tell(to_, fmt::format("{}: {}\n", label_, line));
      pending_.erase(0, end + 1);
    }
  }

 private:
  FileHandle from_;
  std::FILE* to_;
  std::string label_, pending_, doors_;
  bool open_ = true;
};

// The ssh connection to one worker.
class Connection {
 public:
  explicit Connection(const RemoteWorker& worker) : worker_(worker) { start(worker.arguments); }
  const std::string& name() const { return worker_.name; }
  const std::vector<Lines>& outputs() const { return outputs_; }
  bool running() const { return process_ > 0; }
  int starts() const { return starts_; }
  bool has_restarted() const { return starts_ > 1; }
  // The doors of the run that a running worker knows; empty without one.
  std::string doors() const {
    for (const Lines& lines : outputs_)
      if (running() && !lines.doors().empty()) return lines.doors();
    return "";
  }

  void restart_after_pause() { restart_at_ = Deadline::after(restart_pause(starts_)); }
  bool restarts_now() const { return !running() && restart_at_.passed(); }
  void restart(const std::string& doors) {
    restart_at_ = Deadline::never();
    start(worker_.again(doors));
  }

  void send(const std::string& line) {
    const std::string text = line + "\n";
    (void)!::write(control_.get(), text.data(), text.size());
  }
  void pass_output_on() {
    for (Lines& lines : outputs_)
      if (lines.open()) lines.pass_on();
  }
  // Returns the exit code once, after all output has been printed.
  std::optional<int> take_exit_code() {
    if (!running()) return {};
    const std::optional<int> code = ended(process_);
    if (!code) return {};
    pass_output_on();
    process_ = 0;
    return code;
  }
  // Ends ssh itself, because the machine may no longer answer.
  void end_connection() const {
    if (running()) ::kill(-process_, SIGKILL);
  }

 private:
  void start(const std::vector<std::string>& arguments) {
    PipeEnds input = make_pipe(), output = make_pipe(), error = make_pipe();
    // If this process is killed, ssh lives until the other end has read the end of its input.
    process_ =
        start_program(arguments, {input.read.get(), output.write.get(), error.write.get()}, 0);
    control_ = std::move(input.write);
    outputs_.clear();
    outputs_.emplace_back(std::move(output.read), stdout, worker_.label);
    outputs_.emplace_back(std::move(error.read), stderr, worker_.label);
    ++starts_;
    send(worker_.secret);
  }

  RemoteWorker worker_;
  pid_t process_ = 0;
  int starts_ = 0;
  Deadline restart_at_ = Deadline::never();
  FileHandle control_;
  std::vector<Lines> outputs_;
};

class RemoteSupervision {
 public:
  RemoteSupervision(const std::vector<RemoteWorker>& workers, int restarts) : restarts_(restarts) {
    for (const RemoteWorker& worker : workers) connections_.emplace_back(worker);
  }

  int run() {
    while (running() > 0) {
      wait_for_output();
      for (Connection& connection : connections_) {
        connection.pass_output_on();
        if (const std::optional<int> code = connection.take_exit_code())
          note_end(connection, *code);
      }
      restart_lost_workers();
      obey_signals();
      escalate();
    }
    return result_ != 0 ? result_ : succeeded_ ? 0 : last_lost_;
  }

 private:
  size_t running() const {
    return static_cast<size_t>(std::ranges::count_if(
        connections_, [](const Connection& connection) { return connection.running(); }));
  }

  void wait_for_output() const {
    std::vector<pollfd> files;
    for (const Connection& connection : connections_)
      for (const Lines& lines : connection.outputs())
        if (lines.open()) files.push_back({lines.file(), POLLIN, 0});
    constexpr int kMilliseconds = 20;
    ::poll(files.data(), files.size(), kMilliseconds);
  }

  void send_to_all(const std::string& line) {
    for (Connection& connection : connections_)
      if (connection.running()) connection.send(line);
  }

  void note_end(Connection& connection, int code) {
    if (code == 0) {
      succeeded_ = true;
    } else if (code == 128 + SIGINT || code == 128 + SIGTERM) {
      if (result_ == 0)
        result_ = 128 + (last_remote_signal != 0 ? last_remote_signal.load() : code - 128);
    } else if (code == kConnectionLost || code > 128 || connection.has_restarted()) {
      note_loss(connection, code);
    } else if (result_ == 0) {
      result_ = code;
      if (running() > 0) {
        interrupt_at_ = Deadline::after(kFailureSeconds);
        kill_at_ = Deadline::after(2 * kFailureSeconds);
      }
    }
  }

  void note_loss(Connection& connection, int code) {
    last_lost_ = code;
    const bool again = !ends() && connection.starts() <= restarts_ && !doors_of_the_run().empty();
    log(LogLevel::error, "{} was lost: {}{}", connection.name(),
        code == kConnectionLost ? std::string("the connection has ended")
        : code > 128 ? fmt::format("killed by signal {} ({})", code - 128, ::strsignal(code - 128))
                     : fmt::format("it could not rejoin the run, exit code {}", code),
        again ? fmt::format("; starting it again ({} of {})", connection.starts(), restarts_) : "");
    if (again) connection.restart_after_pause();
  }

  // True if the run has been stopped, or a worker has failed.
  bool ends() const { return obeyed_ != 0 || result_ != 0; }

  // Empty before the workers have connected.
  std::string doors_of_the_run() const {
    for (const Connection& connection : connections_)
      if (const std::string doors = connection.doors(); !doors.empty()) return doors;
    return "";
  }

  void restart_lost_workers() {
    for (Connection& connection : connections_)
      if (connection.restarts_now() && !ends())
        if (const std::string doors = doors_of_the_run(); !doors.empty()) connection.restart(doors);
  }

  void obey_signals() {
    const int signals = remote_signals;
    if (signals == obeyed_) return;
    if (obeyed_ == 0) kill_at_ = Deadline::after(kStopSeconds);
    obeyed_ = signals;
    send_to_all("INT");
  }

  void escalate() {
    if (interrupt_at_.passed()) {
      interrupt_at_ = Deadline::never();
      send_to_all("INT");
    }
    if (end_at_.passed())
      for (const Connection& connection : connections_) connection.end_connection();
    if (!kill_at_.passed()) return;
    kill_at_ = Deadline::never();
    for (const Connection& connection : connections_)
      if (connection.running())
        log(LogLevel::warning, "{} does not stop; killing it", connection.name());
    send_to_all("KILL");
    end_at_ = Deadline::after(kFailureSeconds);
  }

  const CountSignals signals_;
  const int restarts_;
  std::vector<Connection> connections_;
  int obeyed_ = 0, result_ = 0, last_lost_ = 0;
  bool succeeded_ = false;
  Deadline interrupt_at_ = Deadline::never(), kill_at_ = Deadline::never(),
           end_at_ = Deadline::never();
};

// Reads the launcher's lines from standard input.
class Orders {
 public:
  // Reads the first line and nothing beyond it. Throws at the end of input.
  std::string first_line() {
    while (pending_.find('\n') == pending_.npos)
      require(read_some(), ErrorKind::io, "[launch] standard input ended before the token");
    return take_line();
  }
  bool ended() const { return ended_; }
  // Waits up to `milliseconds` and returns the lines received.
  std::vector<std::string> next(int milliseconds) {
    pollfd file{ended_ ? -1 : STDIN_FILENO, POLLIN, 0};
    if (::poll(&file, 1, milliseconds) > 0) read_some();
    std::vector<std::string> lines;
    while (pending_.find('\n') != pending_.npos) lines.push_back(take_line());
    return lines;
  }

 private:
  bool read_some() {
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got > 0) pending_.append(buffer.data(), static_cast<size_t>(got));
    ended_ = got == 0 || (got < 0 && errno != EINTR);
    return !ended_;
  }
  std::string take_line() {
    const size_t end = pending_.find('\n');
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return line;
  }

  std::string pending_;
  bool ended_ = false;
};

// Lets the command that starts next write status lines.
void hand_on(const News& news) {
  ::fcntl(news.handed_on(), F_SETFD, 0);
  ::setenv(kNewsVariable, std::to_string(news.handed_on()).c_str(), 1);
}

void pass_doors_on(News& news) {
  news.read([](pid_t, const std::vector<std::string>& words) {
    if (words[1] == "met") tell(stderr, fmt::format("{}{}\n", kDoorsMark, words[2]));
  });
}

}  // namespace

int run_remotely(const std::vector<RemoteWorker>& workers, int restarts) {
  return RemoteSupervision(workers, restarts).run();
}

int follow_launcher(const std::vector<std::string>& command) {
  const CountSignals signals;
  Orders orders;
  ::setenv("ARTEL_TOKEN", orders.first_line().c_str(), 1);
  const FileHandle nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  News news;
  hand_on(news);
  const pid_t worker = start_program(command, {.input = nothing.get()}, SIGTERM);
  int obeyed = 0;
  Deadline kill_at = Deadline::never();
  constexpr int kMilliseconds = 20;
  while (true) {
    const bool had_ended = orders.ended();
    for (const std::string& order : orders.next(kMilliseconds)) {
      if (order == "INT") ::kill(worker, SIGINT);
      if (order == "TERM") ::kill(worker, SIGTERM);
      if (order == "KILL") ::kill(-worker, SIGKILL);
    }
    pass_doors_on(news);
    if (orders.ended() && !had_ended) {
      ::kill(worker, SIGTERM);
      kill_at = Deadline::after(kStopSeconds);
    }
    if (const int count = remote_signals; count != obeyed) {
      obeyed = count;
      ::kill(worker, last_remote_signal == SIGHUP ? SIGTERM : last_remote_signal.load());
    }
    if (kill_at.passed()) ::kill(-worker, SIGKILL);
    if (const std::optional<int> code = ended(worker)) return *code;
  }
}

}  // namespace artel
