// Clock offsets between workers on different machines.
//
//   const artel::ClockReading reading = artel::compare_clocks(cluster.group());
//   artel::println("{} s ahead, give or take {}", reading.ahead, reading.error);
#pragma once

#include "artel/comm/group.h"

namespace artel {

struct ClockReading {
  double at = 0;     // seconds of this worker's own clock
  double ahead = 0;  // offset to the clock of worker 0
  double error = 0;  // bound on the error; at worker 0, the largest of all workers
};

// Seconds of this worker's clock, that of artel::Clock.
double clock_seconds();

// Collective. Each worker in turn answers worker 0 a few times; the fastest round trip gives the
// best bound, half of its time. `group` may be null.
ClockReading compare_clocks(comm::Group* group);

// Converts `at` to the clock of worker 0, assuming a constant drift between two readings.
double at_worker_0(double at, const ClockReading& first, const ClockReading& last);

}  // namespace artel
