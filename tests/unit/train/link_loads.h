// What each link between workers carries in an exchange: promised by the schedule of its algorithm,
// and counted by a group.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artel/comm/collectives/schedule.h"
#include "artel/exec/device.h"
#include "artel/train/step/exchange.h"

namespace artel {

inline constexpr int64_t kBytes = 840 * 4 * sizeof(float);  // chunks of all schedules are equal

struct Load {
  int64_t bytes = 0, messages = 0;
};
using Links = std::vector<std::vector<Load>>;  // by sender and receiver

struct LinkCase {
  std::string strategy, reduction, hosts;  // the host of each rank, a digit each
  int coordinators = 1;

  int size() const { return static_cast<int>(hosts.size()); }
  std::vector<int> host_numbers() const {
    std::vector<int> numbers;
    for (const char host : hosts) numbers.push_back(host - '0');
    return numbers;
  }
  bool has_shared_hosts() const {
    return std::set<char>(hosts.begin(), hosts.end()).size() < hosts.size();
  }
  std::string text() const {
    return fmt::format("{}, {}, hosts {}, {} coordinators", strategy, reduction, hosts,
                       coordinators);
  }
};

using ScheduleOf = std::function<comm::Schedule(int rank)>;

inline void add_hops(Links& links, const ScheduleOf& schedule_of) {
  for (int rank = 0; rank < std::ssize(links); ++rank) {
    const comm::Schedule schedule = schedule_of(rank);
    for (const comm::Hop& hop : schedule.hops) {
      if (hop.direction != comm::Direction::send) continue;
      Load& load = links[rank][hop.peer];
      load.bytes += (hop.last_chunk - hop.first_chunk) * kBytes / schedule.chunks;
      ++load.messages;
    }
  }
}

// Whole buckets to one rank, and back.
inline void add_coordinator(Links& links, int root) {
  const auto size = static_cast<int>(links.size());
  add_hops(links, [&](int rank) {
    comm::Schedule gather = comm::gather_schedule(size, rank, root);
    gather.chunks = 1;  // each is a bucket
    return gather;
  });
  add_hops(links, [&](int rank) { return comm::broadcast_schedule(size, rank, root); });
}

inline Links promised(const LinkCase& c, int buckets) {
  Links links(c.hosts.size(), std::vector<Load>(c.hosts.size()));
  const std::vector<int> hosts = c.host_numbers();
  const comm::Algorithm algorithm = c.strategy == "ring"           ? comm::Algorithm::ring
                                    : c.strategy == "tree"         ? comm::Algorithm::tree
                                    : c.strategy == "halving"      ? comm::Algorithm::halving
                                    : c.strategy == "hierarchical" ? comm::Algorithm::hierarchical
                                    : c.has_shared_hosts()         ? comm::Algorithm::hierarchical
                                                                   : comm::Algorithm::direct;
  // At the beginning of each operation ranks tell their neighbours what they are about to do.
  constexpr int64_t kNotice = 48;
  const int operations = buckets * (c.strategy == "coordinator" ? 2 : 1);
  for (int rank = 0; rank < c.size(); ++rank) {
    Load& load = links[rank][(rank + 1) % c.size()];
    load.bytes += operations * kNotice;
    load.messages += operations;
  }
  for (int bucket = 0; bucket < buckets; ++bucket)
    if (c.strategy == "coordinator")
      add_coordinator(links, bucket % c.coordinators);
    else
      add_hops(links, [&](int rank) {
        return comm::all_reduce_schedule(algorithm, c.size(), rank, hosts);
      });
  return links;
}

// What this rank sends to each other one in an exchange of some buckets, with one lane per worker.
inline std::vector<Load> loads_measured(const LinkCase& c, std::shared_ptr<comm::Group> group,
                                        int buckets) {
  const Membership membership = {.group = group};
  const auto bytes = static_cast<size_t>(kBytes);
  const Memory sums = cpu().allocate(bytes * static_cast<size_t>(buckets));
  std::ranges::fill(sums.floats(), 1.0f);
  std::vector<Bucket> parts;
  for (int b = 0; b < buckets; ++b)
    parts.push_back({.offset = bytes * static_cast<size_t>(b), .bytes = bytes});
  group->barrier();
  std::vector<comm::Traffic> before;
  for (int peer = 0; peer < c.size(); ++peer) before.push_back(group->traffic(peer));
  {
    Exchange exchange(
        membership,
        {.strategy = c.strategy, .reduction = c.reduction, .coordinators = c.coordinators});
    exchange.begin_step(1, parts, comm::LaneLayout::even(c.size(), c.size()));
    for (int b = 0; b < buckets; ++b) exchange.start(b, parts[b], {sums});
    for (int b = 0; b < buckets; ++b) exchange.wait(b);
  }
  std::vector<Load> loads;
  for (int peer = 0; peer < c.size(); ++peer) {
    comm::Traffic traffic = group->traffic(peer);
    traffic -= before[peer];
    loads.push_back({traffic.sent_bytes, traffic.sent_messages});
  }
  for (const float sum : sums.floats()) EXPECT_EQ(sum, static_cast<float>(c.size()));
  group->barrier();
  return loads;
}

}  // namespace artel
