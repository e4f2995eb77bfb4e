// Where worker 0 takes requests for traces (run/trace_request.h) and answers them, in a thread of
// its own: the steps wait neither for the disk nor for whoever asks.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "artel/run/run_folder.h"
#include "artel/run/trace_request.h"
#include "artel/train/trainer.h"

namespace artel {

class TraceDesk {
 public:
  // `ask` has the next steps traced; the trace is to be handed in later, from any thread.
  TraceDesk(const RunFolder& folder, std::function<void(int64_t steps)> ask);
  // Answers whoever still waits.
  ~TraceDesk();
  TraceDesk(const TraceDesk&) = delete;
  TraceDesk& operator=(const TraceDesk&) = delete;

  // `workers` are their names, by rank. Returns at once.
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
  std::string id_;  // of the request under way; of the thread alone

  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  std::optional<Finished> finished_;
  bool ends_ = false;

  std::thread thread_;
};

}  // namespace artel
