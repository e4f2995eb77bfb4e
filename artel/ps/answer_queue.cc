#include "artel/ps/answer_queue.h"

namespace artel::ps {

AnswerQueue::AnswerQueue(Client& client) : client_(client), thread_([this] { work(); }) {}

AnswerQueue::~AnswerQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void AnswerQueue::expect(const std::shared_ptr<Question>& question) {
  {
    const MutexLock lock(mutex_);
    expected_.push_back(question);
  }
  changed_.notify_all();
}

bool AnswerQueue::is_answered(const Question& question) {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return question.answered;
}

void AnswerQueue::wait(const Question& question) {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return question.answered || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

void AnswerQueue::work() {
  MutexLock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return stopping_ || !expected_.empty(); });
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
