// How far the clocks of workers on different machines are apart.
//
//   const artel::ClockReading reading = artel::compare_clocks(cluster.group());
//   artel::println("{} s ahead, give or take {}", reading.ahead, reading.error);
#pragma once

#include "artel/comm/group.h"

namespace artel {

struct ClockReading {
  double at = 0;     // seconds of this worker's own clock
  double ahead = 0;  // of the clock of worker 0
  double error = 0;  // at most; at worker 0: the largest of all workers
};

// Seconds of this worker's clock, that of artel::Clock.
double clock_seconds();

// A collective call. Each worker in turn answers worker 0 a few times; the fastest answer tells
// most: its clock was read within half of the time that it took. `group` may be null.
ClockReading compare_clocks(comm::Group* group);

// When `at` was by the clock of worker 0, after two readings, between which clocks drift evenly.
double at_worker_0(double at, const ClockReading& first, const ClockReading& last);

}  // namespace artel
