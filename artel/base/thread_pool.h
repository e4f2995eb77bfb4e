// The threads of a worker, one for each core it may use.
//
//   artel::ThreadPool pool(4);
//   std::vector<float> squares(1000);
//   artel::parallel_for(pool, 1000, 16, [&](int64_t begin, int64_t end) {
//     for (int64_t i = begin; i < end; ++i) squares[i] = static_cast<float>(i * i);
//   });
//
// All parallel work of a worker runs on one pool, so it never uses more cores than it was given.
// oneDNN and OpenBLAS are limited to one thread inside each of them (see exec/libraries.h).
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

  // Calls task(i) for each i in [0, tasks), on all threads, and returns when all are done. The
  // first exception thrown by a task is rethrown here after the others have ended. A call from
  // inside a task runs its tasks in the calling thread. One caller at a time.
  void run(int64_t tasks, const std::function<void(int64_t)>& task);

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

// Splits [0, n) into contiguous parts whose sizes are multiples of `grain` (except the last) and
// calls body(begin, end) for each; at most one part per thread of the pool.
void parallel_for(ThreadPool& pool, int64_t n, int64_t grain,
                  const std::function<void(int64_t, int64_t)>& body);

}  // namespace artel
