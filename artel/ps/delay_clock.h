// A clock that bounds the number of iterations between the fastest and the slowest worker.
//
// It counts the finished iterations of each worker. With a delay of tau, a worker that is tau
// iterations ahead of the slowest waits before its next one. With tau = 0, an iteration takes
// effect when all have finished it, so workers run in lockstep. With tau = 1 they do, too; the
// difference is how the server applies a push (see Setup::together). Without a limit no worker
// waits. Pure bookkeeping without threads or clocks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace artel::ps {

class DelayClock {
 public:
  // An empty `delay` means no limit. All workers start with `finished` iterations.
  DelayClock(int workers, std::optional<int64_t> delay, int64_t finished = 0);
  // Each worker starts with its own number of iterations.
  DelayClock(std::vector<int64_t> finished, std::optional<int64_t> delay);

  // Throws if the worker has already finished this iteration or should have waited.
  void finish(int worker, int64_t iteration);
  // Removes a worker. The others no longer wait for it.
  void drop(int worker);

  bool may_start(int worker) const;
  bool present(int worker) const { return present_[static_cast<size_t>(worker)]; }
  int64_t finished(int worker) const { return finished_[static_cast<size_t>(worker)]; }
  // Iterations of the slowest remaining worker; the largest count if none remain.
  int64_t slowest() const;

 private:
  std::optional<int64_t> delay_;
  std::vector<int64_t> finished_;
  std::vector<bool> present_;
};

}  // namespace artel::ps
