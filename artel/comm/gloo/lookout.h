// Looks out while another library waits and cannot be interrupted by its caller.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace artel::comm::gloo {

class Lookout {
 public:
  // Calls `look` now and then on a thread of its own. Once it has thrown, calls `give_up`, which is
  // to end the wait; if that throws, too, the wait ends by its own deadline.
  Lookout(std::function<void()> look, std::function<void()> give_up)
      : look_(std::move(look)), give_up_(std::move(give_up)), thread_([this] { work(); }) {}
  ~Lookout() { stop(); }
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // While waiting: throws what `look` has thrown.
  void check() const {
    if (has_seen_) std::rethrow_exception(seen_);
  }

  // When the wait is over: the same.
  void finish() {
    stop();
    if (seen_) std::rethrow_exception(seen_);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(10), [this] { return stopping_; }))
      try {
        look_();
      } catch (...) {
        seen_ = std::current_exception();
        has_seen_ = true;
        try {
          give_up_();
        } catch (const std::exception&) {
          // The first cause is what `finish` reports.
        }
        return;
      }
  }

  std::function<void()> look_, give_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::exception_ptr seen_;
  std::atomic<bool> has_seen_{false};
  std::thread thread_;
};

}  // namespace artel::comm::gloo
