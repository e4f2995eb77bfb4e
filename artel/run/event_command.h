// Runs the user's command for events (observe.on_event), one at a time, in a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "artel/base/time.h"
#include "artel/observe/live.h"

namespace artel {

class EventCommand {
 public:
  // `folder` is that of the run. An empty command: nothing is run.
  EventCommand(std::string command, std::filesystem::path folder);
  // Commands that wait or run have a few more seconds.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  // Returns at once. While many are waiting, further ones are dropped.
  void run(const observe::LiveEvent& event);

 private:
  void work();
  void run_one(const observe::LiveEvent& event);
  bool time_is_up() const;

  const std::string command_;
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  std::deque<observe::LiveEvent> waiting_;
  bool ends_ = false;
  Deadline ends_by_ = Deadline::never();
  std::thread thread_;
};

}  // namespace artel
