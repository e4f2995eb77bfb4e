#include "artel/base/mutex.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace artel {
namespace {

struct Mailbox {
  void put(std::string text) {
    {
      const MutexLock lock(mutex);
      letter = std::move(text);
    }
    filled.notify_one();
  }
  std::string take() {
    MutexLock lock(mutex);
    filled.wait(lock, [this]() ARTEL_REQUIRES(mutex) { return !letter.empty(); });
    return std::exchange(letter, "");
  }

  Mutex mutex;
  Condition filled;
  std::string letter ARTEL_GUARDED_BY(mutex);
};

TEST(Mutex, AConditionIsWaitedForAndTheMutexReleasedMeanwhile) {
  Mailbox box;
  std::thread sender([&] { box.put("hello"); });
  EXPECT_EQ(box.take(), "hello");
  sender.join();
  MutexLock lock(box.mutex);
  EXPECT_FALSE(box.filled.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
}

TEST(Mutex, IsTriedAndAdopted) {
  Mutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  {
    MutexLock lock(mutex, std::adopt_lock);
    std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
    lock.unlock();
    lock.lock();
  }
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
}  // namespace artel
