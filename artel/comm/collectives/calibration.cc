#include "artel/comm/collectives/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <map>
#include <set>

#include "artel/base/error.h"

namespace artel::comm {
namespace {

double rounds_of_tree(size_t ranks) { return std::bit_width(ranks - 1); }

double message(const LinkCost& link, double bytes) { return link.latency + bytes / link.bandwidth; }

// Rings and pairs send 2(n-1)/n of the data, in `rounds` messages.
double spread(const LinkCost& link, double rounds, size_t ranks, double bytes) {
  return rounds * link.latency +
         2.0 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * bytes / link.bandwidth;
}

// The bytes that the busiest wire carries one after the other, in one direction, in multiples of
// the size of the data. Segments stream, so levels of the tree add no time. The root of two or
// three ranks returns sums while it receives. With more ranks, an inner node first receives from
// all its children and then sends to them.
double volume_of_tree(size_t ranks, size_t hosts) {
  if (hosts == ranks && ranks <= 4) return ranks < 4 ? static_cast<double>(ranks - 1) : 2.5;
  if (hosts < 2) return 4;
  const size_t of_host = (ranks + hosts - 1) / hosts;
  std::map<size_t, double> children;  // on other hosts, by host of the parent
  for (size_t rank = 1; rank < ranks; ++rank) {
    const size_t parent = (rank - 1) / 2;
    if (parent / of_host != rank / of_host) ++children[parent / of_host];
  }
  double most = 0;
  for (const auto& [host, count] : children) most = std::max(most, count);
  return 2 * most;
}

// The ranks of a host exchange their stripes while the wire is busy, except for the first and the
// last stripe. Each host sends `sums` partial sums and the total of its slice to all other hosts.
double striped_seconds(const Calibration& calibration, const RankCount& count, double sums,
                       double size) {
  const auto ranks = static_cast<double>(count.ranks), hosts = static_cast<double>(count.hosts);
  const double inside = 2 * (ranks / hosts - 1) * message(calibration.inside, size / ranks);
  if (count.hosts < 2) return inside;
  const LinkCost& wire = calibration.between;
  return inside + 2 * (hosts - 1) * wire.latency +
         (sums + 1) * (hosts - 1) / hosts * size / wire.bandwidth;
}

}  // namespace

RankCount count_ranks(std::span<const int> hosts) {
  return {hosts.size(), std::set<int>(hosts.begin(), hosts.end()).size()};
}

double predicted_seconds(const Calibration& calibration, Algorithm algorithm,
                         std::span<const int> hosts, size_t bytes) {
  return predicted_seconds(calibration, algorithm, count_ranks(hosts), static_cast<double>(bytes));
}

double predicted_seconds(const Calibration& calibration, Algorithm algorithm,
                         const RankCount& count, double size) {
  const size_t ranks = count.ranks, host_count = count.hosts;
  if (ranks < 2) return 0;
  // Ranks on one host share its wire, so traffic over it is slowed down by their number, except in
  // a ring, where each host has one neighbour on either side.
  const double sharing = host_count > 1 ? static_cast<double>(ranks) / host_count : 1;
  const LinkCost link = host_count > 1 ? calibration.between : calibration.inside;
  const LinkCost shared{link.latency, link.bandwidth / sharing};
  switch (algorithm) {
    case Algorithm::ring:
      return spread(link, 2.0 * (ranks - 1), ranks, size);
    case Algorithm::tree:
      return 2 * rounds_of_tree(ranks) * link.latency +
             volume_of_tree(ranks, host_count) * size / link.bandwidth;
    case Algorithm::halving: {
      // Only the exchanges between hosts cross the wire: the first ones, with the largest parts.
      const size_t power = std::bit_floor(ranks);
      const double extra = power == ranks ? 0 : 2 * message(shared, size);
      const size_t parts = host_count > 1 ? std::min(power, host_count) : power;
      return spread(shared, 2 * rounds_of_tree(power), parts, size) + extra;
    }
    case Algorithm::hierarchical:
      return striped_seconds(calibration, count, 1, size);
    default:
      fail(ErrorKind::invalid_argument, "[comm] cost: no model of '{}'", to_string(algorithm));
  }
}

double predicted_exact_seconds(const Calibration& calibration, const RankCount& count, double sums,
                               double bytes) {
  return count.ranks < 2 ? 0 : striped_seconds(calibration, count, sums, bytes);
}

Algorithm choose_all_reduce(const Calibration& calibration, std::span<const int> hosts,
                            size_t bytes) {
  return choose_all_reduce(calibration, count_ranks(hosts), static_cast<double>(bytes));
}

Algorithm choose_all_reduce(const Calibration& calibration, const RankCount& count, double bytes) {
  constexpr std::array kCandidates{Algorithm::ring, Algorithm::halving, Algorithm::hierarchical,
                                   Algorithm::tree};
  return *std::min_element(kCandidates.begin(), kCandidates.end(), [&](Algorithm a, Algorithm b) {
    return predicted_seconds(calibration, a, count, bytes) <
           predicted_seconds(calibration, b, count, bytes);
  });
}

std::string Calibration::to_text() const {
  return fmt::format("artel-calibration-1 {:.9e} {:.9e} {:.9e} {:.9e}", inside.latency,
                     inside.bandwidth, between.latency, between.bandwidth);
}

Calibration Calibration::from_text(const std::string& text) {
  Calibration result;
  const int fields =
      std::sscanf(text.c_str(), "artel-calibration-1 %lf %lf %lf %lf", &result.inside.latency,
                  &result.inside.bandwidth, &result.between.latency, &result.between.bandwidth);
  const auto sensible = [](const LinkCost& link) {
    return link.latency > 0 && link.latency < 1e3 && link.bandwidth > 0 && link.bandwidth < 1e15;
  };
  require(fields == 4 && sensible(result.inside) && sensible(result.between), ErrorKind::corrupt,
          "[comm] calibration: got '{:.60}', expected 'artel-calibration-1' and four numbers",
          text);
  return result;
}

}  // namespace artel::comm
