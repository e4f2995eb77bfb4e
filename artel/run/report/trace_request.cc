#include "artel/run/report/trace_request.h"

#include <thread>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/plural.h"
#include "artel/base/time.h"
#include "artel/cluster/token.h"
#include "artel/run/report/live_view.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr double kBetweenLooks = 0.2;   // seconds between looks
constexpr double kUntilTakenOver = 15;  // seconds

// The JSON object in a small file; empty if the file does not exist.
std::optional<nlohmann::json> read_object(const fs::path& path) {
  constexpr uint64_t kMostBytes = 64 << 10;
  if (!fs::is_regular_file(path)) return {};
  std::string text;
  try {
    text = read_file(path, kMostBytes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::not_found) return {};  // since then
    throw;
  }
  nlohmann::json json = parse_json(text, path.string());
  require(json.is_object(), ErrorKind::corrupt, "[{}] expected an object, got {}", path.string(),
          json_excerpt(json));
  return json;
}

template <typename T>
T member(const nlohmann::json& json, const char* name, const fs::path& path) {
  try {
    return json.at(name).get<T>();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}: {}", path.string(), name, error.what());
  }
}

void check_running(const fs::path& run, const LiveView& view) {
  require(view.status == RunStatus::running, ErrorKind::not_found,
          "{}; only a run that is being trained can be traced", ending_of(view, run));
}

// One request until its answer.
class Inquiry {
 public:
  Inquiry(const fs::path& run, const TraceWish& wish)
      : folder_(run), wish_(wish), request_{random_token(), wish.steps} {}

  void send() {
    check_running(folder_.path(), live_view(folder_.path()));
    require(!fs::exists(folder_.trace_request()), ErrorKind::unsupported,
            "[{}] another request for a trace is pending; try again, or remove that file",
            folder_.trace_request().string());
    write_file_atomically(folder_.trace_request(), to_json(request_) + '\n');
  }

  // True if the trace is complete. Throws if it was refused or failed.
  bool answered() {
    const auto answer = read_trace_answer(folder_);
    if (!answer || answer->id != request_.id) return false;
    require(answer->state != "refused", ErrorKind::cancelled, "[{}] cannot be traced now: {}",
            folder_.path().string(), answer->text);
    begun_ = true;
    return answer->state == "done";
  }

  // Throws if an answer can no longer arrive.
  void check_progress() {
    const LiveView view = live_view(folder_.path());
    check_alive(view);
    check_pace(view);
  }

  // Removes the files of the request, with or without an answer.
  void clean_up() {
    std::error_code ignored;
    fs::remove(folder_.trace_request(), ignored);
    const auto answer = read_trace_answer(folder_);
    if (answer && answer->id == request_.id && answer->state != "recording")
      fs::remove(folder_.trace_answer(), ignored);
  }

 private:
  void check_alive(const LiveView& view) {
    if (view.status == RunStatus::running) {
      alive_ = Clock::now();
      return;
    }
    // Another worker may take over from a dead worker 0.
    if (view.status == RunStatus::dead && seconds_between(alive_, Clock::now()) < kUntilTakenOver)
      return;
    // A run may answer right before it ends.
    if (!answered()) check_running(folder_.path(), view);
  }

  void check_pace(const LiveView& view) {
    const int64_t step = view.run ? view.run->step : 0;
    if (begun_ && first_step_ < 0) first_step_ = step;
    // More than the requested steps without an answer: it will not come.
    if (begun_ && step != step_ && step <= first_step_ + wish_.steps) {
      step_ = step;
      since_ = Clock::now();
    }
    if (seconds_between(since_, Clock::now()) < wish_.timeout) return;
    const std::string doing =
        view.run && !view.run->workers.empty() ? view.run->workers.front().doing : "";
    require(step_ == step || !begun_, ErrorKind::cancelled,
            "[{}] has made {} and not answered for {:.0f} s; try again", folder_.path().string(),
            counted(step - first_step_, "step"), wish_.timeout);
    if (begun_)
      fail(ErrorKind::cancelled,
           "[{}] no step has ended for {:.0f} s{}; try again later, or with a larger --timeout",
           folder_.path().string(), wish_.timeout,
           doing.empty() ? "" : fmt::format(" (worker 0: {})", doing));
    fail(ErrorKind::cancelled,
         "[{}] did not answer within {:.0f} s: it hangs, has not started, or its version does not "
         "support traces on demand; look at `artel top`, or try a larger --timeout",
         folder_.path().string(), wish_.timeout);
  }

  const RunFolder folder_;
  const TraceWish wish_;
  const TraceRequest request_;
  bool begun_ = false;  // it has answered that it records
  int64_t first_step_ = -1, step_ = -1;
  Clock::time_point since_ = Clock::now(), alive_ = since_;
};

}  // namespace

std::string to_json(const TraceRequest& request) {
  return nlohmann::ordered_json{{"id", request.id}, {"steps", request.steps}}.dump();
}

std::string to_json(const TraceAnswer& answer) {
  return nlohmann::ordered_json{{"id", answer.id}, {"state", answer.state}, {"text", answer.text}}
      .dump();
}

std::optional<TraceRequest> read_trace_request(const RunFolder& folder) {
  const fs::path path = folder.trace_request();
  const auto json = read_object(path);
  if (!json) return {};
  TraceRequest request = {member<std::string>(*json, "id", path),
                          member<int64_t>(*json, "steps", path)};
  require(request.steps >= 1 && request.steps <= kMostTracedSteps, ErrorKind::corrupt,
          "[{}] steps: got {}, expected 1 to {}", path.string(), request.steps, kMostTracedSteps);
  return request;
}

std::optional<TraceAnswer> read_trace_answer(const RunFolder& folder) {
  const fs::path path = folder.trace_answer();
  const auto json = read_object(path);
  if (!json) return {};
  return TraceAnswer{member<std::string>(*json, "id", path),
                     member<std::string>(*json, "state", path),
                     member<std::string>(*json, "text", path)};
}

fs::path trace_run(const fs::path& run, const TraceWish& wish) {
  Inquiry inquiry(run, wish);
  inquiry.send();
  try {
    while (!inquiry.answered()) {
      inquiry.check_progress();
      std::this_thread::sleep_for(std::chrono::duration<double>(kBetweenLooks));
    }
  } catch (...) {
    inquiry.clean_up();
    throw;
  }
  inquiry.clean_up();
  return RunFolder(run).trace();
}

}  // namespace artel
