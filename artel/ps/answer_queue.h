// Waits for servers' answers in order on its own thread, so each can be used as soon as it arrives.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "artel/ps/client.h"

namespace artel::ps {

// What was asked; derive from it to carry along what the answer needs.
struct Question {
  Client::Ticket ticket;
  bool answered = false;  // used by the queue
};

class AnswerQueue {
 public:
  // The client is borrowed; nobody else waits with it while answers are expected.
  explicit AnswerQueue(Client& client);
  ~AnswerQueue();

  void expect(const std::shared_ptr<Question>& question);
  // Both throw what went wrong with this question or an earlier one.
  bool is_answered(const Question& question);
  void wait(const Question& question);

 private:
  void work();

  Client& client_;
  std::mutex mutex_;  // protects what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Question>> expected_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace artel::ps
