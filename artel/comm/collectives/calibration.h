// Chooses the fastest all_reduce with a cost model of four measured numbers.
//
// A message costs latency + bytes / bandwidth, inside a host and between hosts. These and the
// layout of the ranks give the time of each algorithm, and the cheapest is chosen. The choice is
// the same on all ranks, because they share the numbers.
//
//   const artel::comm::Calibration links{.between = {.latency = 60e-6, .bandwidth = 125e6}};
//   artel::println("{}", to_string(choose_all_reduce(links, artel::comm::RankCount{8, 4}, 100e6)));
#pragma once

#include <span>
#include <string>

#include "artel/comm/collectives/schedule.h"

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

// How many ranks take part, on how many hosts.
struct RankCount {
  size_t ranks = 1, hosts = 1;
};
RankCount count_ranks(std::span<const int> hosts);  // the host number of each rank

// The predicted seconds of an all_reduce. `hosts` gives the host number of each rank.
double predicted_seconds(const Calibration& calibration, Algorithm algorithm,
                         std::span<const int> hosts, size_t bytes);
double predicted_seconds(const Calibration& calibration, Algorithm algorithm,
                         const RankCount& count, double bytes);

// The predicted seconds of a canonical sum (Group::lane_reduce) to which each host contributes
// `sums` partial sums. With M hosts, (sums + 1)(M - 1)/M of the bytes cross the wire of each.
double predicted_exact_seconds(const Calibration& calibration, const RankCount& count, double sums,
                               double bytes);

// The cheapest of ring, tree, halving and hierarchical.
Algorithm choose_all_reduce(const Calibration& calibration, std::span<const int> hosts,
                            size_t bytes);
Algorithm choose_all_reduce(const Calibration& calibration, const RankCount& count, double bytes);

}  // namespace artel::comm
