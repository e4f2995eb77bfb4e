// Looks out while another library waits and cannot be interrupted by its caller.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>

#include "artel/base/mutex.h"

namespace artel::comm::gloo {

class Lookout {
 public:
  // Calls `look` periodically on its own thread. After `look` throws, calls `give_up`, which should
  // end the wait. If that throws as well, the wait ends by its own deadline.
  Lookout(std::function<void()> look, std::function<void()> give_up)
      : look_(std::move(look)), give_up_(std::move(give_up)), thread_([this] { work(); }) {}
  ~Lookout() { stop(); }
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // Rethrows the error of `look`. Call while waiting.
  void check() const {
    if (has_seen_) std::rethrow_exception(seen_);
  }

  // Rethrows the error of `look`. Call when the wait is over.
  void finish() {
    stop();
    if (seen_) std::rethrow_exception(seen_);
  }

 private:
  void stop() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void work() {
    MutexLock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(10),
                              [this]() ARTEL_REQUIRES(mutex_) { return stopping_; }))
      try {
        look_();
      } catch (...) {
        seen_ = std::current_exception();
        has_seen_ = true;
        try {
          give_up_();
        } catch (const std::exception&) {
          // `finish` reports the first cause
        }
        return;
      }
  }

  std::function<void()> look_, give_up_;
  Mutex mutex_;
  Condition changed_;
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
  std::exception_ptr seen_;
  std::atomic<bool> has_seen_{false};
  std::thread thread_;
};

}  // namespace artel::comm::gloo
