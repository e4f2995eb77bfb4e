// Which all_reduce is fastest: a cost model with four measured numbers.
//
// A message costs latency + bytes / bandwidth, inside a host and between hosts. These and the
// layout of the ranks give the time of each algorithm, and the cheapest is chosen. The choice is
// the same on all ranks, because they share the numbers.
#pragma once

#include <span>
#include <string>

#include "artel/comm/schedule.h"

namespace artel::comm {

struct LinkCost {
  double latency;    // seconds for an empty message
  double bandwidth;  // bytes per second, each way
};

struct Calibration {
  LinkCost inside{20e-6, 2e9};    // between ranks of one host
  LinkCost between{100e-6, 1e8};  // between hosts

  // One line of text, and back. Throws if it is not one of ours.
  std::string to_text() const;
  static Calibration from_text(const std::string& text);
};

// The predicted seconds of an all_reduce. `hosts` gives the host number of each rank.
double predicted_seconds(const Calibration& calibration, Algorithm algorithm,
                         std::span<const int> hosts, size_t bytes);

// The cheapest of ring, tree, halving_doubling and two_level.
Algorithm choose_all_reduce(const Calibration& calibration, std::span<const int> hosts,
                            size_t bytes);

}  // namespace artel::comm
