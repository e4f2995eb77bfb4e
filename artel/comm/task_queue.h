// Runs tasks one after another on its own thread, which starts with the first task.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "artel/base/mutex.h"
#include "artel/comm/connection/handle.h"

namespace artel::comm {

class TaskQueue {
 public:
  TaskQueue() = default;
  // Finishes all started tasks, then ends. Drops errors of tasks that were not waited for.
  ~TaskQueue();

  Handle start(std::function<void()> task);

  // True if all started tasks have ended.
  bool idle();
  bool is_own_thread() const;

 private:
  struct Task;
  class TaskState;

  void work();

  Mutex mutex_;
  Condition changed_;
  std::deque<std::shared_ptr<Task>> tasks_ ARTEL_GUARDED_BY(mutex_);  // the first one is running
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace artel::comm
