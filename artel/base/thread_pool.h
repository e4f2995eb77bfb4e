// The threads of a worker, one per available core.
//
//   artel::ThreadPool pool(4);
//   std::vector<float> squares(1000);
//   artel::parallel_for(pool, 1000, 16, [&](int64_t begin, int64_t end) {
//     for (int64_t i = begin; i < end; ++i) squares[i] = static_cast<float>(i * i);
//   });
//
// All parallel work of a worker runs on one pool, so it never uses more cores than it was given.
// oneDNN and OpenBLAS run single-threaded inside each thread (see exec/libraries.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace artel {

class ThreadPool {
 public:
  // `threads` includes the thread that calls `run`. Each thread calls `on_start`, if given, once.
  explicit ThreadPool(int threads, const std::function<void()>& on_start = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls task(i) for each i in [0, tasks) on all threads, and returns when all calls have
  // returned. Rethrows the first exception of a task. A nested call runs its tasks in the calling
  // thread. Only one thread may call `run` at a time.
  void run(int64_t tasks, const std::function<void(int64_t)>& task);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// Splits [0, n) into at most one contiguous part per thread and calls body(begin, end) for each.
// Part sizes are multiples of `grain`, except the last.
void parallel_for(ThreadPool& pool, int64_t n, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body);

}  // namespace artel
