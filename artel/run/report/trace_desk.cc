#include "artel/run/report/trace_desk.h"

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/run/report/trace_file.h"

namespace artel {
namespace {

constexpr double kBetweenRequests = 0.5;  // seconds between looks

}  // namespace

TraceDesk::TraceDesk(const RunFolder& folder, std::function<void(int64_t)> ask)
    : folder_(folder), ask_(std::move(ask)), thread_([this] { work(); }) {}

TraceDesk::~TraceDesk() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void TraceDesk::hand_in(StepTrace trace, std::vector<std::string> workers) {
  {
    const MutexLock lock(mutex_);
    finished_ = {std::move(trace), std::move(workers)};
  }
  changed_.notify_one();
}

void TraceDesk::work() {
  try {
    // The worker 0 that had begun to answer is not this one.
    if (const auto before = read_trace_answer(folder_); before && before->state == "recording") {
      id_ = before->id;
      answer("refused", "worker 0 has changed during the trace; try again");
    }
  } catch (const std::exception& error) {
    log(LogLevel::warning, "{}", error.what());
  }
  for (bool ends = false; !ends;) {
    std::optional<Finished> finished;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock, std::chrono::duration<double>(kBetweenRequests),
                        [this]() ARTEL_REQUIRES(mutex_) { return ends_ || finished_; });
      ends = ends_;
      finished = std::exchange(finished_, {});
    }
    try {
      if (finished) save(*finished);
      if (id_.empty()) look_for_request();
      if (ends && !id_.empty()) answer("refused", "the run has ended");
    } catch (const std::exception& error) {
      log(LogLevel::warning, "{}; training continues", error.what());
    }
  }
}

void TraceDesk::look_for_request() {
  std::error_code ignored;
  if (!std::filesystem::exists(folder_.trace_request(), ignored)) return;
  std::optional<TraceRequest> request;
  try {
    request = read_trace_request(folder_);
  } catch (const Error&) {
    std::filesystem::remove(folder_.trace_request(), ignored);  // otherwise it would be read again
    throw;
  }
  std::filesystem::remove(folder_.trace_request(), ignored);
  if (!request) return;
  id_ = request->id;
  answer("recording");
  ask_(request->steps);
}

void TraceDesk::save(const Finished& finished) {
  if (id_.empty()) return;
  if (!finished.trace.refused.empty()) return answer("refused", finished.trace.refused);
  try {
    const auto said = save_trace(finished.trace.timeline, finished.workers, folder_.trace(),
                                 folder_.trace_summary());
    if (said)
      answer("done");
    else
      answer("refused", "no step was finished");
  } catch (const Error& error) {
    answer("refused", error.what());
  }
}

// "recording" is not the last answer to a request, all others are.
void TraceDesk::answer(const std::string& state, const std::string& text) {
  const TraceAnswer answer = {state == "recording" ? id_ : std::exchange(id_, {}), state, text};
  write_file_atomically(folder_.trace_answer(), to_json(answer) + '\n');
}

}  // namespace artel
