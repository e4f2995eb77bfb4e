// The clock that bounds how far workers run apart.
//
// It counts the iterations that each worker has finished. With a delay of tau no worker is ever
// more than tau ahead of the slowest: a worker that is tau ahead waits before its next iteration.
// With tau = 0 an iteration takes effect when all have finished it, so all go in step. They also do
// so with tau = 1; the difference is in what the server does with a push (see Setup::together).
// Without a limit nobody waits. Pure bookkeeping: no threads, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace artel::ps {

class DelayClock {
 public:
  // An empty `delay` means no limit. All workers start with `finished` finished iterations.
  DelayClock(int workers, std::optional<int64_t> delay, int64_t finished = 0);
  // Each worker starts with iterations of its own.
  DelayClock(std::vector<int64_t> finished, std::optional<int64_t> delay);

  // Throws if the worker has finished this iteration or a later one, or should have waited.
  void finish(int worker, int64_t iteration);
  // The worker is gone; nobody waits for it any more.
  void drop(int worker);

  bool may_start(int worker) const;
  bool present(int worker) const { return present_[static_cast<size_t>(worker)]; }
  int64_t finished(int worker) const { return finished_[static_cast<size_t>(worker)]; }
  // Of the remaining workers; the largest count if none remain.
  int64_t slowest() const;

 private:
  std::optional<int64_t> delay_;
  std::vector<int64_t> finished_;
  std::vector<bool> present_;
};

}  // namespace artel::ps
