#include "artel/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/mutex.h"
#include "artel/base/relax.h"

namespace artel {
namespace {

constexpr int kMostThreads = 4096;

thread_local bool inside_task = false;

// Spins until `condition` holds, because kernels follow one another within microseconds and waking
// a sleeping thread takes tens of microseconds. Spins for about 20 us, then yields for about 200
// us. Returns false if the condition still does not hold.
template <typename Condition>
bool soon(const Condition& condition) {
  for (int spin = 0; spin < 1000; ++spin) {
    if (condition()) return true;
    relax();
  }
  for (int spin = 0; spin < 500; ++spin) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return condition();
}

}  // namespace

struct ThreadPool::State {
  Mutex mutex;
  Condition wake;
  Condition finished;
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> stop{false};
  const std::function<void(int64_t)>* task = nullptr;
  int64_t tasks = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int> busy{0};  // helper threads still in the current generation
  std::exception_ptr error ARTEL_GUARDED_BY(mutex);
  std::vector<std::thread> helpers;

  void work() {
    inside_task = true;
    for (int64_t i = next.fetch_add(1); i < tasks; i = next.fetch_add(1)) {
      try {
        (*task)(i);
      } catch (...) {
        const MutexLock lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
    inside_task = false;
  }

  // Waits for the helpers to leave.
  void end() {
    {
      const MutexLock lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& helper : helpers) helper.join();
  }

  void help() {
    uint64_t seen = 0;
    for (;;) {
      const auto called = [&] { return generation.load() != seen || stop.load(); };
      if (!soon(called)) {
        MutexLock lock(mutex);
        wake.wait(lock, called);
      }
      if (stop.load()) return;
      seen = generation.load();
      work();
      if (busy.fetch_sub(1) == 1) {
        const MutexLock lock(mutex);
        finished.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads, const std::function<void()>& on_start)
    : threads_(std::max(1, threads)), state_(std::make_unique<State>()) {
  require(threads_ <= kMostThreads, ErrorKind::invalid_argument,
          "[threads] got {}, expected at most {}", threads_, kMostThreads);
  if (on_start) on_start();
  try {
    for (int i = 1; i < threads_; ++i) {
      state_->helpers.emplace_back([this, on_start] {
        if (on_start) on_start();
        state_->help();
      });
    }
  } catch (const std::system_error& error) {
    const size_t started = state_->helpers.size() + 1;
    state_->end();
    fail(ErrorKind::unsupported, "[threads] got {}, but the system allows {}: {}; try fewer",
         threads_, started, error.what());
  }
}

ThreadPool::~ThreadPool() { state_->end(); }

void ThreadPool::run(int64_t tasks, const std::function<void(int64_t)>& task) {
  if (tasks <= 0) return;
  if (tasks == 1 || threads_ == 1 || inside_task) {
    for (int64_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  State& s = *state_;
  {
    const MutexLock lock(s.mutex);
    s.task = &task;
    s.tasks = tasks;
    s.next = 0;
    s.busy = static_cast<int>(s.helpers.size());
    s.error = nullptr;
    s.generation.fetch_add(1);
  }
  s.wake.notify_all();
  s.work();
  const auto done = [&] { return s.busy.load() == 0; };
  soon(done);
  MutexLock lock(s.mutex);
  s.finished.wait(lock, done);
  if (s.error) std::rethrow_exception(std::exchange(s.error, nullptr));
}

void parallel_for(ThreadPool& pool, int64_t n, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body) {
  if (n <= 0) return;
  grain = std::max<int64_t>(1, grain);
  const int64_t grains = (n + grain - 1) / grain;
  const int64_t parts = std::min<int64_t>(pool.threads(), grains);
  pool.run(parts, [&](int64_t part) {
    const int64_t begin = grains * part / parts * grain;
    const int64_t end = std::min(n, grains * (part + 1) / parts * grain);
    if (begin < end) body(begin, end);
  });
}

}  // namespace artel
