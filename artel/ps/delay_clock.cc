#include "artel/ps/delay_clock.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel::ps {

DelayClock::DelayClock(int workers, std::optional<int64_t> delay, int64_t finished)
    : DelayClock(std::vector<int64_t>(static_cast<size_t>(workers), finished), delay) {}

DelayClock::DelayClock(std::vector<int64_t> finished, std::optional<int64_t> delay)
    : delay_(delay), finished_(std::move(finished)), present_(finished_.size(), true) {}

void DelayClock::finish(int worker, int64_t iteration) {
  int64_t& own = finished_[static_cast<size_t>(worker)];
  require(iteration > own, ErrorKind::invalid_argument,
          "[ps] worker {}: got iteration {}, expected one after {}", worker, iteration, own);
  require(may_start(worker), ErrorKind::invalid_argument,
          "[ps] worker {}: finished iteration {} while the slowest had finished {}, expected a "
          "delay of at most {}",
          worker, iteration, slowest(), delay_.value_or(0));
  own = iteration;
}

void DelayClock::drop(int worker) { present_[static_cast<size_t>(worker)] = false; }

bool DelayClock::may_start(int worker) const {
  return !delay_ || finished(worker) - slowest() < std::max<int64_t>(1, *delay_);
}

int64_t DelayClock::slowest() const {
  std::optional<int64_t> least;
  for (size_t i = 0; i < finished_.size(); ++i)
    if (present_[i]) least = std::min(least.value_or(finished_[i]), finished_[i]);
  return least ? *least : *std::max_element(finished_.begin(), finished_.end());
}

}  // namespace artel::ps
