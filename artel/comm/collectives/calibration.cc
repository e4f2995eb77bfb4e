#include "artel/comm/collectives/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
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
      // A parent has two children: twice the data in, and twice out.
      return 2 * rounds_of_tree(ranks) * link.latency + 4 * size / shared.bandwidth;
    case Algorithm::halving: {
      const bool power = std::has_single_bit(ranks);
      const double extra = power ? 0 : 2 * message(shared, size);
      return spread(shared, 2 * rounds_of_tree(std::bit_floor(ranks)), std::bit_floor(ranks),
                    size) +
             extra;
    }
    case Algorithm::hierarchical: {
      // The ranks of a host exchange the stripes of each other while the wire is busy, except the
      // first and the last of them.
      const double neighbours = static_cast<double>(ranks) / host_count - 1;
      const double inside =
          2 * neighbours * message(calibration.inside, size / static_cast<double>(ranks));
      return inside + (host_count > 1 ? spread(link, 2.0 * (host_count - 1), host_count, size) : 0);
    }
    default:
      fail(ErrorKind::invalid_argument, "[comm] cost: no model of '{}'", to_string(algorithm));
  }
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
