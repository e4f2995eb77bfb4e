#include "artel/plan/network/exchange.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/schedule.h"

namespace artel::plan {
namespace {

// Real segments have 256 KiB. Fewer are enough to see data stream through a tree.
constexpr double kSegments = 64;
constexpr double kSegmentBytes = 256 << 10;

void add_schedule(std::vector<Transfer>& transfers, const comm::Schedule& schedule, double bytes,
                  int first_round = 0) {
  for (const comm::Hop& hop : schedule.hops)
    transfers.push_back({.round = first_round + hop.round,
                         .peer = hop.peer,
                         .sends = hop.direction == comm::Direction::send,
                         .bytes = bytes * (hop.last_chunk - hop.first_chunk) / schedule.chunks,
                         .first = bytes * hop.first_chunk / schedule.chunks});
}

// Cuts messages into segments, in the order in which comm/executor.h sends them: by round, then by
// segment, so that messages to several peers alternate.
std::vector<Transfer> segments_of(const std::vector<Transfer>& transfers, double all) {
  const double largest = std::max(kSegmentBytes, all / kSegments);
  std::vector<std::pair<int, Transfer>> segments;
  for (const Transfer& transfer : transfers) {
    const int count = std::max(1, static_cast<int>(std::ceil(transfer.bytes / largest - 1e-9)));
    for (int i = 0; i < count; ++i) {
      Transfer segment = transfer;
      segment.bytes /= count;
      segment.first += i * segment.bytes;
      segments.emplace_back(i, segment);
    }
  }
  std::ranges::stable_sort(segments, {},
                           [](const auto& one) { return std::pair(one.second.round, one.first); });
  std::vector<Transfer> sorted;
  for (const auto& [number, segment] : segments) sorted.push_back(segment);
  return sorted;
}

// Worker 0 receives all gradients and broadcasts the sums along a tree.
std::vector<Transfer> coordinator(const Exchange& exchange, int rank) {
  std::vector<Transfer> transfers;
  if (rank > 0) transfers.push_back({.sends = true, .bytes = exchange.bytes});
  for (int peer = 1; rank == 0 && peer < exchange.workers; ++peer)
    transfers.push_back({.peer = peer, .bytes = exchange.bytes});
  add_schedule(transfers, comm::broadcast_schedule(exchange.workers, rank, 0), exchange.bytes, 1);
  return transfers;
}

// Number of nodes of the canonical tree that a rank sends to its neighbours.
size_t held_nodes(const comm::HostLanes& plan, int host, int rank) {
  size_t count = 0;
  for (const comm::HostLanes::Sum& sum : plan.sums(host))
    count +=
        static_cast<size_t>(std::ranges::count(sum.parts, rank, &comm::HostLanes::Sum::Part::rank));
  return count;
}

// Each server holds a part of the weights. It receives the gradients of all workers, then sends
// them the new weights.
std::vector<Transfer> parameter_server(const Exchange& exchange, int rank) {
  std::vector<Transfer> transfers;
  const bool is_server = rank >= exchange.workers;
  const int first = is_server ? 0 : exchange.workers;
  const int peers = is_server ? exchange.workers : exchange.servers;
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < peers; ++i) {
      // Each worker starts with another server, to spread the load.
      const int peer = first + (i + rank) % peers;
      const bool sends = is_server == (round == 1);
      const int part = is_server ? rank - exchange.workers : peer - exchange.workers;
      const double bytes = exchange.bytes / exchange.servers;
      transfers.push_back({round, peer, sends, bytes, part * bytes});
    }
  return transfers;
}

// The canonical sum (comm/collectives/lane_reduce.h). The ranks of a host divide the data into
// stripes, and the hosts divide each stripe. Rounds: nodes to neighbours of the stripe, sums of the
// host to other hosts, totals to other hosts, totals to neighbours.
std::vector<Transfer> exact(const Exchange& exchange, int rank) {
  const comm::HostLanes& plan = *exchange.lane_plan;
  const int host = plan.host_of(rank), hosts = plan.hosts(), stripe = plan.stripe_of(rank);
  const double bytes = exchange.bytes / plan.stripes(), slice = bytes / hosts;
  std::vector<Transfer> transfers;
  const auto add = [&](int round, int peer, bool sends, double amount, double first, size_t times) {
    for (size_t i = 0; i < times; ++i) transfers.push_back({round, peer, sends, amount, first});
  };
  for (const int peer : plan.ranks(host)) {
    if (peer == rank) continue;
    const int other = plan.stripe_of(peer);
    if (other >= 0) {
      add(0, peer, true, bytes, other * bytes, held_nodes(plan, host, rank));
      add(3, peer, false, bytes, other * bytes, 1);
    }
    if (stripe >= 0) {
      add(0, peer, false, bytes, stripe * bytes, held_nodes(plan, host, peer));
      add(3, peer, true, bytes, stripe * bytes, 1);
    }
  }
  for (int distance = 1; stripe >= 0 && distance < hosts; ++distance) {
    const int to = (host + distance) % hosts, from = (host + hosts - distance) % hosts;
    const int target = plan.ranks(to)[static_cast<size_t>(stripe)];
    const int source = plan.ranks(from)[static_cast<size_t>(stripe)];
    const auto first = [&](int owner) { return stripe * bytes + owner * slice; };
    add(1, target, true, slice, first(to), plan.sums(host).size());
    add(1, source, false, slice, first(host), plan.sums(from).size());
    add(2, target, true, slice, first(host), 1);
    add(2, source, false, slice, first(from), 1);
  }
  return transfers;
}

}  // namespace

const std::vector<std::string>& exchange_strategies() {
  static const std::vector<std::string> names = {"exact",        "ring",   "tree",        "halving",
                                                 "hierarchical", "direct", "coordinator", "ps"};
  return names;
}

Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes,
                       int lanes) {
  const std::string name(strategy);
  require(std::ranges::count(exchange_strategies(), name) == 1, ErrorKind::invalid_argument,
          "--strategies: got '{}', expected {}{}", name, join(exchange_strategies(), ", "),
          did_you_mean(name, exchange_strategies()));
  require(name != "ps" || servers <= pool.machines, ErrorKind::invalid_argument,
          "--servers: got {}, expected at most one for each of the {} machines", servers,
          pool.machines);
  Exchange exchange = {.strategy = name,
                       .workers = static_cast<int>(pool.workers),
                       .servers = servers,
                       .lanes = std::max(lanes, static_cast<int>(pool.workers)),
                       .bytes = bytes};
  for (int worker = 0; worker < exchange.workers; ++worker)
    exchange.hosts.push_back(static_cast<int>(worker / pool.kind.devices));
  for (int server = 0; server < exchange.ranks() - exchange.workers; ++server)
    exchange.hosts.push_back(server);
  if (name == "exact") {
    std::vector<comm::LaneRange> ranges;
    for (int worker = 0; worker < exchange.workers; ++worker)
      ranges.push_back(comm::even_lanes(exchange.lanes, exchange.workers, worker));
    exchange.lane_plan =
        std::make_shared<const comm::HostLanes>(exchange.lanes, ranges, exchange.hosts);
  }
  return exchange;
}

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank) {
  // A server updates its part when it has all gradients.
  if (exchange.strategy == "ps") return parameter_server(exchange, rank);
  if (exchange.strategy == "coordinator")
    return segments_of(coordinator(exchange, rank), exchange.bytes);
  if (exchange.strategy == "exact") return segments_of(exact(exchange, rank), exchange.bytes);
  std::vector<Transfer> transfers;
  add_schedule(transfers,
               comm::all_reduce_schedule(comm::algorithm_from_string(exchange.strategy),
                                         exchange.workers, rank, exchange.hosts),
               exchange.bytes);
  return segments_of(transfers, exchange.bytes);
}

double most_sums(const Exchange& exchange) {
  size_t most = 1;
  for (int host = 0; exchange.lane_plan && host < exchange.lane_plan->hosts(); ++host)
    most = std::max(most, exchange.lane_plan->sums(host).size());
  return static_cast<double>(most);
}

double message_count(const Exchange& exchange) {
  const double n = exchange.workers;
  const double machines = 1 + *std::ranges::max_element(exchange.hosts);
  const double segments = 2 * n * kSegments;
  if (exchange.strategy == "ps") return 2 * n * exchange.servers;
  if (exchange.strategy == "tree" || exchange.strategy == "coordinator") return segments;
  if (exchange.strategy == "ring" || exchange.strategy == "direct")
    return 2 * (n - 1) * n + segments;
  if (exchange.strategy == "halving")
    return 2 * n * std::ceil(std::log2(std::max(1.0, n))) + segments;
  const double sums = exchange.strategy == "exact" ? most_sums(exchange) + 1 : 2;
  return sums * (n * (machines + n / machines) + segments);
}

double busiest_bytes(const Exchange& exchange) {
  std::map<int, std::pair<double, double>> of_machine;
  for (int rank = 0; rank < exchange.ranks(); ++rank)
    for (const Transfer& transfer : transfers_of(exchange, rank)) {
      if (exchange.hosts[transfer.peer] == exchange.hosts[rank]) continue;
      auto& [sent, received] = of_machine[exchange.hosts[rank]];
      (transfer.sends ? sent : received) += transfer.bytes;
    }
  double most = 0;
  for (const auto& [machine, bytes] : of_machine)
    most = std::max({most, bytes.first, bytes.second});
  return most;
}

}  // namespace artel::plan
