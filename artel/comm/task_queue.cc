#include "artel/comm/task_queue.h"

#include <utility>

#include "artel/base/error.h"

namespace artel::comm {

void Handle::wait(Deadline deadline) {
  if (state_ == nullptr) return;
  state_->wait(deadline);
  state_.reset();
}

struct TaskQueue::Task {
  std::function<void()> function;
  bool done = false;
  std::exception_ptr error;
};

class TaskQueue::TaskState : public Handle::State {
 public:
  TaskState(TaskQueue& queue, std::shared_ptr<Task> task) : queue_(queue), task_(std::move(task)) {}

  void wait(Deadline deadline) override {
    MutexLock lock(queue_.mutex_);
    const auto done = [this] { return task_->done; };
    // A point far in the future overflows inside wait_until; a year is long enough.
    const auto limit = std::min(deadline.at(), Clock::now() + std::chrono::hours(24 * 365));
    require(queue_.changed_.wait_until(lock, limit, done), ErrorKind::timeout,
            "[comm] a started operation did not end before the deadline of its wait");
    if (task_->error) std::rethrow_exception(task_->error);
  }

 private:
  TaskQueue& queue_;
  std::shared_ptr<Task> task_;
};

TaskQueue::~TaskQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Handle TaskQueue::start(std::function<void()> function) {
  auto task = std::make_shared<Task>(Task{std::move(function)});
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(task);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
  return Handle(std::make_unique<TaskState>(*this, std::move(task)));
}

bool TaskQueue::idle() {
  const MutexLock lock(mutex_);
  return tasks_.empty();
}

bool TaskQueue::is_own_thread() const { return thread_.get_id() == std::this_thread::get_id(); }

void TaskQueue::work() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() ARTEL_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::shared_ptr<Task> task = tasks_.front();
    lock.unlock();
    try {
      task->function();
    } catch (...) {
      task->error = std::current_exception();
    }
    task->function = nullptr;
    lock.lock();
    task->done = true;
    tasks_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace artel::comm
