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

std::vector<Transfer> all_reduce(const Exchange& exchange, int rank) {
  std::vector<Transfer> transfers;
  add_schedule(transfers,
               comm::all_reduce_schedule(comm::algorithm_from_string(exchange.strategy),
                                         exchange.workers, rank, exchange.hosts),
               exchange.bytes);
  return transfers;
}

double machines_of(const Exchange& exchange) {
  return 1 + *std::ranges::max_element(exchange.hosts);
}

double messages_around(const Exchange& e) { return 2.0 * (e.workers - 1) * e.workers; }
double messages_along_a_tree(const Exchange& e) { return 2.0 * (e.workers - 1); }
double messages_of_halving(const Exchange& e) {
  return 2.0 * e.workers * std::ceil(std::log2(std::max(1, e.workers)));
}
double messages_of_hosts(const Exchange& e) {
  return 2 * e.workers * (machines_of(e) + e.workers / machines_of(e));
}
double messages_of_servers(const Exchange& e) { return 2.0 * e.workers * e.servers; }

double calibrated_seconds(const Exchange& e, const Pool& pool) {
  const comm::RankCount count = {static_cast<size_t>(e.workers),
                                 static_cast<size_t>(machines_of(e))};
  return comm::predicted_seconds(pool.links(), comm::algorithm_from_string(e.strategy), count,
                                 e.bytes);
}

// The link that limits an exchange.
const comm::LinkCost& link_of(const Exchange& e, const Pool& pool) {
  return machines_of(e) > 1 ? pool.between : pool.kind.inside;
}
double direct_seconds(const Exchange& e, const Pool& pool) {
  const comm::LinkCost& link = link_of(e, pool);
  return 2 * (link.latency + (e.workers - 1.0) / e.workers * e.bytes / link.bandwidth);
}
double coordinator_seconds(const Exchange& e, const Pool& pool) {
  const comm::LinkCost& link = link_of(e, pool);
  const double wire = e.bytes / link.bandwidth;
  return link.latency + (e.workers - 1) * wire +
         std::ceil(std::log2(e.workers)) * (link.latency + 2 * wire);
}
double server_seconds(const Exchange& e, const Pool& pool) {
  const comm::LinkCost& link = link_of(e, pool);
  return 2 * (link.latency + 1.0 * e.workers / e.servers * e.bytes / link.bandwidth);
}

// Sent by each of `ranks` that share the sum evenly.
double shared_bytes(double ranks, double bytes) { return 2 * (ranks - 1) / ranks * bytes; }
double bytes_of_workers(const Exchange& e) { return shared_bytes(e.workers, e.bytes); }
double bytes_of_hosts(const Exchange& e) { return shared_bytes(machines_of(e), e.bytes); }
double bytes_of_coordinator(const Exchange& e) { return (e.workers - 1) * e.bytes; }
double bytes_of_servers(const Exchange& e) {
  return (e.workers - e.workers / machines_of(e)) / e.servers * e.bytes;
}

// A strategy as the simulation knows it. The numbers are closed forms, for exchanges of more
// messages than can be counted one by one.
struct Form {
  std::string name;
  bool compared;  // by `artel simulate` unless the user names strategies
  bool needs_servers;
  std::vector<Transfer> (*transfers)(const Exchange&, int rank);
  double (*messages)(const Exchange&);  // of all ranks
  double (*seconds)(const Exchange&, const Pool&);
  double (*busiest)(const Exchange&);  // bytes of the busiest of several machines
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"ring", true, false, all_reduce, messages_around, calibrated_seconds, bytes_of_workers},
      {"tree", true, false, all_reduce, messages_along_a_tree, calibrated_seconds,
       bytes_of_workers},
      {"halving", true, false, all_reduce, messages_of_halving, calibrated_seconds,
       bytes_of_workers},
      {"hierarchical", true, false, all_reduce, messages_of_hosts, calibrated_seconds,
       bytes_of_hosts},
      {"direct", false, false, all_reduce, messages_around, direct_seconds, bytes_of_workers},
      {"coordinator", false, false, coordinator, messages_along_a_tree, coordinator_seconds,
       bytes_of_coordinator},
      {"ps", true, true, parameter_server, messages_of_servers, server_seconds, bytes_of_servers}};
  return all;
}

const Form& form_of(const std::string& strategy) {
  const auto found = std::ranges::find(forms(), strategy, &Form::name);
  const std::vector<std::string> names = exchange_strategies();
  require(found != forms().end(), ErrorKind::invalid_argument,
          "--strategies: got '{}', expected {}{}", strategy, join(names, ", "),
          did_you_mean(strategy, names));
  return *found;
}

}  // namespace

std::vector<std::string> exchange_strategies(bool only_compared) {
  std::vector<std::string> names;
  for (const Form& form : forms())
    if (form.compared || !only_compared) names.push_back(form.name);
  return names;
}

Exchange make_exchange(std::string_view strategy, const Pool& pool, int servers, double bytes) {
  const Form& form = form_of(std::string(strategy));
  require(!form.needs_servers || servers <= pool.machines, ErrorKind::invalid_argument,
          "--servers: got {}, expected at most one for each of the {} machines", servers,
          pool.machines);
  Exchange exchange = {.strategy = form.name,
                       .workers = static_cast<int>(pool.workers),
                       .servers = form.needs_servers ? servers : 0,
                       .bytes = bytes};
  for (int worker = 0; worker < exchange.workers; ++worker)
    exchange.hosts.push_back(static_cast<int>(worker / pool.kind.devices));
  for (int server = 0; server < exchange.servers; ++server) exchange.hosts.push_back(server);
  return exchange;
}

std::vector<Transfer> transfers_of(const Exchange& exchange, int rank) {
  return form_of(exchange.strategy).transfers(exchange, rank);
}

double message_count(const Exchange& exchange) {
  return form_of(exchange.strategy).messages(exchange);
}

double exchange_seconds(const Exchange& exchange, const Pool& pool) {
  return exchange.workers < 2 ? 0 : form_of(exchange.strategy).seconds(exchange, pool);
}

double busiest_bytes_by_form(const Exchange& exchange) {
  return machines_of(exchange) < 2 ? 0 : form_of(exchange.strategy).busiest(exchange);
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
