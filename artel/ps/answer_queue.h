// Receives servers' answers in order on its own thread, so that each can be used as soon as it
// arrives.
#pragma once

#include <deque>
#include <exception>
#include <memory>
#include <thread>

#include "artel/base/mutex.h"
#include "artel/ps/client.h"

namespace artel::ps {

// A pending request. Derive from it to store the data needed to process the answer.
struct Question {
  Client::Ticket ticket;
  bool answered = false;  // used by the queue
};

class AnswerQueue {
 public:
  // Borrows the client. No other thread may wait with it while answers are expected.
  explicit AnswerQueue(Client& client);
  ~AnswerQueue();

  void expect(const std::shared_ptr<Question>& question);
  // Both rethrow the error of this question or of an earlier one.
  bool is_answered(const Question& question);
  void wait(const Question& question);

 private:
  void work();

  Client& client_;
  Mutex mutex_;  // guards the members below
  Condition changed_;
  std::deque<std::shared_ptr<Question>> expected_ ARTEL_GUARDED_BY(mutex_);
  std::exception_ptr failure_ ARTEL_GUARDED_BY(mutex_);
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace artel::ps
