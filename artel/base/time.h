// Clocks and deadlines.
//
//   const artel::Deadline deadline = artel::Deadline::after(2);
//   while (!deadline.passed()) artel::println("{} left", artel::format_duration(deadline.left()));
#pragma once

#include <chrono>
#include <string>

namespace artel {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// A point in time by which a blocking call must have returned.
class Deadline {
 public:
  static Deadline after(double seconds) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(seconds)));
  }
  static Deadline never() { return Deadline(Clock::time_point::max()); }

  bool passed() const { return at_ != Clock::time_point::max() && Clock::now() >= at_; }
  // Seconds left, at least 0; a very large number for `never`.
  double left() const {
    if (at_ == Clock::time_point::max()) return 1e18;
    const double left = seconds_between(Clock::now(), at_);
    return left > 0 ? left : 0;
  }
  Clock::time_point at() const { return at_; }

 private:
  explicit Deadline(Clock::time_point at) : at_(at) {}
  Clock::time_point at_;
};

// "12.3 s", "4 min 05 s", "3 h 12 min".
std::string format_duration(double seconds);

}  // namespace artel
