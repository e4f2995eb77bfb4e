// artel_simulator: simulates a step on SimGrid, message by message, for `artel simulate`.
//
// A program of its own, because SimGrid's engine can be used once in a process, and its libraries
// take time to load. Arguments: numbers in the order of plan::simulator_arguments. Prints the
// numbers of the result.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <simgrid/s4u.hpp>
#include <unordered_map>

#include "artel/plan/network/step_simulation.h"

namespace artel::plan {
namespace {

namespace sg = simgrid::s4u;

// A worker or server: computes a third of its step, then exchanges while it computes the rest.
class Rank {
 public:
  Rank(const SimulatedStep& step, int rank, double compute, double* finished)
      : step_(step), rank_(rank), compute_(compute), finished_(finished) {}

  void operator()() {
    sg::this_actor::sleep_for(kStepBeforeSums * compute_);
    const std::vector<Transfer> transfers = transfers_of(step_.exchange, rank_);
    for (size_t begin = 0; begin < transfers.size();) {
      size_t end = begin;
      while (end < transfers.size() && transfers[end].round == transfers[begin].round) ++end;
      run_round({transfers.begin() + static_cast<std::ptrdiff_t>(begin),
                 transfers.begin() + static_cast<std::ptrdiff_t>(end)});
      begin = end;
    }
    finished_[rank_] = std::max(compute_, sg::Engine::get_clock());
  }

 private:
  void run_round(const std::vector<Transfer>& round) {
    static int payload = 0;
    std::vector<sg::CommPtr> messages;
    std::vector<int*> received(round.size());
    for (size_t i = 0; i < round.size(); ++i) {
      const Transfer& transfer = round[i];
      if (transfer.sends)
        messages.push_back(mailbox(rank_, transfer.peer)
                               ->put_async(&payload, static_cast<uint64_t>(transfer.bytes)));
      else
        messages.push_back(mailbox(transfer.peer, rank_)->get_async<int>(&received[i]));
    }
    for (const sg::CommPtr& message : messages) message->wait();
  }

  sg::Mailbox* mailbox(int from, int to) {
    const int64_t key = int64_t{from} << 32 | to;
    sg::Mailbox*& known = mailboxes_[key];
    if (known == nullptr)
      known = sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
    return known;
  }

  const SimulatedStep& step_;
  int rank_;
  double compute_;
  double* finished_;
  std::unordered_map<int64_t, sg::Mailbox*> mailboxes_;
};

// Machines on one switch, with a link for each direction.
std::vector<sg::Host*> make_machines(const Pool& pool, int count) {
  sg::NetZone* const zone = sg::create_star_zone("switch");
  std::vector<sg::Host*> hosts;
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    sg::Host* const host = zone->create_host("host" + name, 1e9);
    const auto make_link = [&](const std::string& kind, const comm::LinkCost& cost,
                               double latency) {
      return zone->create_link(kind + name, cost.bandwidth)->set_latency(latency)->seal();
    };
    const sg::Link* const up = make_link("up", pool.between, pool.between.latency / 2);
    const sg::Link* const down = make_link("down", pool.between, pool.between.latency / 2);
    sg::Link* const inside = make_link("inside", pool.kind.inside, pool.kind.inside.latency);
    inside->set_sharing_policy(sg::Link::SharingPolicy::FATPIPE);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {sg::LinkInRoute(up)}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(down)},
                    false);
    zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr,
                    {sg::LinkInRoute(inside)}, false);
    hosts.push_back(host);
  }
  zone->seal();
  return hosts;
}

StepResult run_engine(const Pool& pool, const SimulatedStep& step) {
  // The plain flow model: bandwidth is shared fairly, and a message takes its latency once. The
  // corrections of SimGrid's default model are for TCP over real Ethernet cards; bandwidths and
  // latencies of machine files are measured with them.
  std::vector<std::string> arguments = {"artel_simulator",
                                        "--log=root.thresh:error",
                                        "--cfg=network/model:CM02",
                                        "--cfg=network/crosstraffic:0",
                                        "--cfg=network/TCP-gamma:1e15",
                                        "--cfg=contexts/stack-size:64"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  auto argc = static_cast<int>(arguments.size());
  const sg::Engine engine(&argc, argv.data());
  const Exchange& exchange = step.exchange;
  const int machines = 1 + *std::ranges::max_element(exchange.hosts);
  const std::vector<sg::Host*> hosts = make_machines(pool, machines);
  std::vector<double> compute = compute_seconds(pool, step);
  compute.resize(static_cast<size_t>(exchange.ranks()), 0);  // servers wait for gradients
  std::vector<double> finished(compute.size());
  for (int rank = 0; rank < exchange.ranks(); ++rank)
    sg::Actor::create("rank" + std::to_string(rank), hosts[exchange.hosts[rank]],
                      Rank(step, rank, compute[rank], finished.data()));
  engine.run();
  StepResult result = {.simulated = true};
  result.seconds = *std::ranges::max_element(finished);
  const double slowest = *std::ranges::max_element(compute);
  result.exchange = std::max(0.0, sg::Engine::get_clock() - kStepBeforeSums * slowest);
  result.utilisation = busiest_bytes(exchange) / pool.between.bandwidth / result.seconds;
  const double all = result.seconds * exchange.workers;
  result.waiting = 1 - std::accumulate(compute.begin(), compute.end(), 0.0) / all;
  return result;
}

int run(const std::vector<std::string>& arguments) {
  const SimulatorTask task = read_simulator_arguments(arguments);
  std::printf("%s\n", to_text(run_engine(task.pool, task.step)).c_str());
  return 0;
}

}  // namespace
}  // namespace artel::plan

int main(int argc, char** argv) {
  try {
    return artel::plan::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "artel_simulator: %s\n", error.what());
    return 1;
  }
}
