// A mutex whose use clang checks, and a condition to wait for; see thread_annotations.h.
//
//   struct Mailbox {
//     std::string take() {
//       artel::MutexLock lock(mutex);
//       filled.wait(lock, [this]() ARTEL_REQUIRES(mutex) { return !letter.empty(); });
//       return std::exchange(letter, "");
//     }
//     artel::Mutex mutex;
//     artel::Condition filled;
//     std::string letter ARTEL_GUARDED_BY(mutex);
//   };
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "artel/base/thread_annotations.h"

namespace artel {

class ARTEL_CAPABILITY("mutex") Mutex {
 public:
  void lock() ARTEL_ACQUIRE() { mutex_.lock(); }
  void unlock() ARTEL_RELEASE() { mutex_.unlock(); }
  bool try_lock() ARTEL_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex while it lives, except between `unlock` and `lock`.
class ARTEL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ARTEL_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  // Adopts a mutex that this thread already holds.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) ARTEL_REQUIRES(mutex)
      : lock_(mutex.mutex_, adopt) {}
  ~MutexLock() ARTEL_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() ARTEL_RELEASE() { lock_.unlock(); }
  void lock() ARTEL_ACQUIRE() { lock_.lock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

// The mutex is held before and after each wait, and whenever `holds` is called. Clang cannot check
// this, hence ARTEL_NOT_CHECKED.
class Condition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <typename Holds>
  void wait(MutexLock& lock, Holds holds) ARTEL_NOT_CHECKED {
    condition_.wait(lock.lock_, holds);
  }
  template <typename Duration>
  void wait_for(MutexLock& lock, const Duration& duration) {
    condition_.wait_for(lock.lock_, duration);
  }
  // Returns the final value of `holds()`: false after a timeout.
  template <typename Duration, typename Holds>
  bool wait_for(MutexLock& lock, const Duration& duration, Holds holds) ARTEL_NOT_CHECKED {
    return condition_.wait_for(lock.lock_, duration, holds);
  }
  template <typename Time, typename Holds>
  bool wait_until(MutexLock& lock, const Time& time, Holds holds) ARTEL_NOT_CHECKED {
    return condition_.wait_until(lock.lock_, time, holds);
  }

 private:
  std::condition_variable condition_;
};

}  // namespace artel
