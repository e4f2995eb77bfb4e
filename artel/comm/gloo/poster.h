// Sends and receives are handed to Gloo by Gloo's own thread.
//
// That thread skips a connection that another thread is using, and polls again at once. If it has
// just preempted that other thread, both stand still until the scheduler's next tick: up to 4 ms.
// So only Gloo's thread uses connections.
#pragma once

#include <gloo/transport/tcp/device.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include "artel/comm/file_handle.h"

namespace artel::comm::gloo {

// A send or a receive.
class Posting {
 public:
  virtual ~Posting() = default;

 private:
  friend class Poster;
  virtual void run() = 0;
  std::exception_ptr error_;
};

class Poster : private ::gloo::transport::tcp::Handler {
 public:
  // The device must outlive this object.
  explicit Poster(::gloo::transport::tcp::Device& device);
  ~Poster() override;

  // Runs it soon; posts run in the order of the calls.
  void post(Posting& posting);
  // After this returns, it neither runs nor will run.
  void withdraw(Posting& posting);
  // Throws what it threw.
  void throw_if_failed(const Posting& posting);

 private:
  void handleEvents(int events) override;

  ::gloo::transport::tcp::Device& device_;
  FileHandle bell_;
  std::mutex mutex_;
  std::condition_variable ran_;
  std::deque<Posting*> waiting_;
  Posting* running_ = nullptr;
};

}  // namespace artel::comm::gloo
