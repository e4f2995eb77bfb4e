#include "artel/run/report/event_command.h"

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/process.h"
#include "artel/base/text.h"

namespace artel {
namespace {

constexpr double kSeconds = 30, kSecondsAtTheEnd = 5;
constexpr size_t kMostWaiting = 16;

}  // namespace

EventCommand::EventCommand(std::string command, std::filesystem::path folder)
    : command_(std::move(command)), folder_(std::filesystem::absolute(folder)) {
  if (!command_.empty()) thread_ = std::thread([this] { work(); });
}

EventCommand::~EventCommand() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    ends_by_ = Deadline::after(kSecondsAtTheEnd);
  }
  changed_.notify_one();
  thread_.join();
}

void EventCommand::run(const observe::LiveEvent& event) {
  if (command_.empty()) return;
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kMostWaiting) return;
    waiting_.push_back(event);
  }
  changed_.notify_one();
}

bool EventCommand::time_is_up() const {
  const MutexLock lock(mutex_);
  return ends_by_.passed();
}

void EventCommand::work() {
  while (true) {
    observe::LiveEvent event;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [this]() ARTEL_REQUIRES(mutex_) { return ends_ || !waiting_.empty(); });
      if (waiting_.empty() || ends_by_.passed()) return;
      event = waiting_.front();
      waiting_.pop_front();
    }
    run_one(event);
  }
}

// Runs it with a shell, so that the command may have its own arguments before the event's.
void EventCommand::run_one(const observe::LiveEvent& event) {
  try {
    const ProcessResult result = run_program(
        {"sh", "-c", command_ + " \"$@\"", "artel", event.kind, std::to_string(event.step),
         event.text, folder_.string()},
        std::filesystem::current_path(), Deadline::after(kSeconds),
        [this] { require(!time_is_up(), ErrorKind::timeout, "the run has ended before it"); });
    if (result.exit_code != 0)
      log(LogLevel::warning, "observe.on_event: '{}' ended with code {}: {}", command_,
          result.exit_code, trim(result.output));
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    log(LogLevel::warning, "observe.on_event: '{}': {}", command_,
        known && known->kind() == ErrorKind::not_found ? "no such program" : error.what());
  }
}

}  // namespace artel
