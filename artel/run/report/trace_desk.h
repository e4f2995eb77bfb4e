// Accepts requests for traces on worker 0 (run/report/trace_request.h) and answers them in a
// separate thread, so that steps wait for neither the disk nor the requester.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/run/folder/run_folder.h"
#include "artel/run/report/trace_request.h"
#include "artel/train/trainer.h"

namespace artel {

class TraceDesk {
 public:
  // `ask` requests a trace of the next steps. Hand it in later with `hand_in`, from any thread.
  TraceDesk(const RunFolder& folder, std::function<void(int64_t steps)> ask);
  // Answers a pending request.
  ~TraceDesk();
  TraceDesk(const TraceDesk&) = delete;
  TraceDesk& operator=(const TraceDesk&) = delete;

  // Hands in a finished trace. `workers` are their names, by rank. Returns at once.
  void hand_in(StepTrace trace, std::vector<std::string> workers);

 private:
  struct Finished {
    StepTrace trace;
    std::vector<std::string> workers;
  };
  void work();
  void look_for_request();
  void save(const Finished& finished);
  void answer(const std::string& state, const std::string& text = "");

  const RunFolder folder_;
  const std::function<void(int64_t)> ask_;
  std::string id_;  // of the pending request; used only by the thread

  Mutex mutex_;  // guards the members below
  Condition changed_;
  std::optional<Finished> finished_ ARTEL_GUARDED_BY(mutex_);
  bool ends_ ARTEL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace artel
