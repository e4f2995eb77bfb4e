// Posts sends and receives from Gloo's own thread.
//
// Gloo's thread skips a connection that another thread is using, and polls again at once. If it has
// preempted that thread, both make no progress until the next scheduler tick, up to 4 ms. Therefore
// only Gloo's thread uses connections.
#pragma once

#include <gloo/transport/tcp/device.h>

#include <deque>
#include <exception>

#include "artel/base/mutex.h"
#include "artel/comm/connection/file_handle.h"

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
  // Rethrows the error of the posting.
  void throw_if_failed(const Posting& posting);

 private:
  void handleEvents(int events) override;

  ::gloo::transport::tcp::Device& device_;
  FileHandle bell_;
  Mutex mutex_;
  Condition ran_;
  std::deque<Posting*> waiting_ ARTEL_GUARDED_BY(mutex_);
  Posting* running_ ARTEL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace artel::comm::gloo
