#include "artel/plan/network/exchange.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/schedule.h"

namespace artel::plan {
namespace {

void add_schedule(std::vector<Transfer>& transfers, const comm::Schedule& schedule, double bytes,
                  int first_round = 0) {
  for (const comm::Hop& hop : schedule.hops)
    transfers.push_back({.round = first_round + hop.round,
                         .peer = hop.peer,
                         .sends = hop.direction == comm::Direction::send,
                         .bytes = bytes * (hop.last_chunk - hop.first_chunk) / schedule.chunks});
}

// Worker 0 receives all gradients and broadcasts the sums along a tree.
std::vector<Transfer> coordinator(const Exchange& exchange, int rank) {
  std::vector<Transfer> transfers;
  if (rank > 0) transfers.push_back({0, 0, true, exchange.bytes});
  for (int peer = 1; rank == 0 && peer < exchange.workers; ++peer)
    transfers.push_back({0, peer, false, exchange.bytes});
  add_schedule(transfers, comm::broadcast_schedule(exchange.workers, rank, 0), exchange.bytes, 1);
  return transfers;
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
      transfers.push_back({round, peer, sends, exchange.bytes / exchange.servers});
    }
  return transfers;
}

}  // namespace

const std::vector<std::string>& exchange_strategies() {
  static const std::vector<std::string> names = {"ring",   "tree",        "halving", "hierarchical",
                                                 "direct", "coordinator", "ps"};
  return names;
}

Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes) {
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
                       .bytes = bytes};
  for (int worker = 0; worker < exchange.workers; ++worker)
    exchange.hosts.push_back(static_cast<int>(worker / pool.kind.devices));
  for (int server = 0; server < exchange.ranks() - exchange.workers; ++server)
    exchange.hosts.push_back(server);
  return exchange;
}

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank) {
  if (exchange.strategy == "coordinator") return coordinator(exchange, rank);
  if (exchange.strategy == "ps") return parameter_server(exchange, rank);
  std::vector<Transfer> transfers;
  add_schedule(transfers,
               comm::all_reduce_schedule(comm::algorithm_from_string(exchange.strategy),
                                         exchange.workers, rank, exchange.hosts),
               exchange.bytes);
  return transfers;
}

double message_count(const Exchange& exchange) {
  const double n = exchange.workers;
  if (exchange.strategy == "ring") return 2 * (n - 1) * n;
  if (exchange.strategy == "direct") return 2 * (n - 1) * n;
  if (exchange.strategy == "tree" || exchange.strategy == "coordinator") return 2 * (n - 1);
  if (exchange.strategy == "ps") return 2 * n * exchange.servers;
  if (exchange.strategy == "halving") return 2 * n * std::ceil(std::log2(std::max(1.0, n)));
  const double machines = 1 + *std::ranges::max_element(exchange.hosts);
  return 2 * n * (machines + n / machines);
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
