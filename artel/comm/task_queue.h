// Runs tasks one after another on its own thread, which starts with the first task.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "artel/comm/handle.h"

namespace artel::comm {

class TaskQueue {
 public:
  TaskQueue() = default;
  // Finishes all started tasks, then ends. An error that nobody waited for is dropped.
  ~TaskQueue();

  Handle start(std::function<void()> task);

  // Whether all started tasks have ended.
  bool idle();
  bool is_own_thread() const;

 private:
  struct Task;
  class TaskState;

  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;  // the first one is running
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace artel::comm
