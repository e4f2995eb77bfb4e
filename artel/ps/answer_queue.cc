#include "artel/ps/answer_queue.h"

namespace artel::ps {

AnswerQueue::AnswerQueue(Client& client) : client_(client), thread_([this] { work(); }) {}

AnswerQueue::~AnswerQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AnswerQueue::expect(const std::shared_ptr<Question>& question) {
  {
    const std::lock_guard lock(mutex_);
    expected_.push_back(question);
  }
  changed_.notify_all();
}

bool AnswerQueue::is_answered(const Question& question) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return question.answered;
}

void AnswerQueue::wait(const Question& question) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return question.answered || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void AnswerQueue::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !expected_.empty(); });
    if (expected_.empty()) return;
    const std::shared_ptr<Question> next = expected_.front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      client_.wait(next->ticket);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    expected_.pop_front();
    next->answered = true;
    if (failure) failure_ = failure;
    changed_.notify_all();
    if (failure_) return;
  }
}

}  // namespace artel::ps
