// artel_simulator: simulates a step on SimGrid, message by message, for `artel simulate`.
//
// A program of its own, because SimGrid's engine can be used once in a process, and its libraries
// take time to load. Arguments: numbers in the order of plan::simulator_arguments. Prints the
// numbers of the result.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <numeric>
#include <simgrid/s4u.hpp>
#include <unordered_map>

#include "artel/observe/trace.h"
#include "artel/plan/network/step_simulation.h"

namespace artel::plan {
namespace {

namespace sg = simgrid::s4u;

// A worker or server: computes a third of its step, then exchanges while it computes the rest.
class Rank {
 public:
  Rank(const SimulatedStep& step, int rank, double compute, double* finished, observe::Trace* trace)
      : step_(step), rank_(rank), compute_(compute), finished_(finished), trace_(trace) {}

  void operator()() {
    // Weights are averaged after the last local step.
    sg::this_actor::sleep_for((step_.local_steps == 1 ? kStepBeforeSums : 1) * compute_);
    if (compute_ > 0) note("compute", observe::TraceThread::kMain, 0, compute_);
    exchange();
    finished_[rank_] = std::max(compute_, sg::Engine::get_clock());
  }

 private:
  // Sends and receives in order, as comm/executor.h does: a send waits for all receives up to the
  // last one of the same bytes in an earlier round.
  void exchange() {
    for (const Transfer& transfer : transfers_of(step_.exchange, rank_))
      (transfer.sends ? sends_ : receives_).push_back(transfer);
    messages_.resize(receives_.size());
    for (size_t i = 0; i < receives_.size(); ++i) waiting_[receives_[i].peer].push_back(i);
    for (auto& [peer, indexes] : waiting_) receive_next(indexes);
    std::vector<sg::CommPtr> sent;
    for (const Transfer& send : sends_) {
      const size_t needed = receives_before(send);
      while (received_ < needed) finish_receive();
      static int payload = 0;
      sent.push_back(
          mailbox(rank_, send.peer)->put_async(&payload, static_cast<uint64_t>(send.bytes)));
    }
    while (received_ < receives_.size()) finish_receive();
    for (const sg::CommPtr& message : sent) message->wait();
  }

  size_t receives_before(const Transfer& send) const {
    const auto end = std::ranges::partition_point(
        receives_, [&](const Transfer& receive) { return receive.round < send.round; });
    constexpr double kNone = 0.5;  // bytes; offsets are rounded
    for (auto last = end; last != receives_.begin(); --last) {
      const Transfer& receive = *std::prev(last);
      const double overlap = std::min(send.first + send.bytes, receive.first + receive.bytes) -
                             std::max(send.first, receive.first);
      if (overlap > kNone) return static_cast<size_t>(last - receives_.begin());
    }
    return 0;
  }

  // The messages of one peer follow each other on its connection.
  void receive_next(std::deque<size_t>& indexes) {
    if (indexes.empty()) return;
    const size_t index = indexes.front();
    indexes.pop_front();
    messages_[index] = mailbox(receives_[index].peer, rank_)->get_async<int>(&payload_);
  }

  void note(const std::string& name, int thread, double begin, double end) {
    const char* const category = thread == observe::TraceThread::kMain ? "compute" : "wire";
    if (trace_ != nullptr) trace_->add({name, category, rank_, thread, begin, end - begin});
  }

  void finish_receive() {
    const sg::CommPtr& message = messages_[received_];
    const Transfer& receive = receives_[received_];
    message->wait();
    if (trace_ != nullptr)
      note(fmt::format("round {} from {}", receive.round + 1, receive.peer),
           observe::TraceThread::kFirstLane + receive.peer, message->get_start_time(),
           message->get_finish_time());
    messages_[received_].reset();
    receive_next(waiting_[receives_[received_++].peer]);
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
  observe::Trace* trace_;  // null if none is written
  std::vector<Transfer> sends_, receives_;
  std::vector<sg::CommPtr> messages_;          // of receives, once they are asked for
  std::map<int, std::deque<size_t>> waiting_;  // receives to ask for, by peer
  size_t received_ = 0;
  int* payload_ = nullptr;
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

StepResult run_engine(const Pool& pool, const SimulatedStep& step, observe::Trace* trace) {
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
  for (double& seconds : compute) seconds *= step.local_steps;
  compute.resize(static_cast<size_t>(exchange.ranks()), 0);  // servers wait for gradients
  std::vector<double> finished(compute.size());
  for (int rank = 0; rank < exchange.ranks(); ++rank)
    sg::Actor::create("rank" + std::to_string(rank), hosts[exchange.hosts[rank]],
                      Rank(step, rank, compute[rank], finished.data(), trace));
  engine.run();
  StepResult result = {.simulated = true};
  result.seconds = *std::ranges::max_element(finished);
  const double slowest = *std::ranges::max_element(compute);
  const double before = (step.local_steps == 1 ? kStepBeforeSums : 1) * slowest;
  result.exchange = std::max(0.0, sg::Engine::get_clock() - before) / step.local_steps;
  result.utilisation = busiest_bytes(exchange) / pool.between.bandwidth / result.seconds;
  const double all = result.seconds * exchange.workers;
  result.waiting = 1 - std::accumulate(compute.begin(), compute.end(), 0.0) / all;
  result.seconds /= step.local_steps;
  return result;
}

void name_ranks(observe::Trace& trace, const Exchange& exchange) {
  for (int rank = 0; rank < exchange.ranks(); ++rank) {
    const bool server = rank >= exchange.workers;
    trace.name_process(rank, server ? fmt::format("server {}", rank - exchange.workers)
                                    : fmt::format("worker {}", rank));
    trace.name_thread(rank, observe::TraceThread::kMain, "compute");
    for (int peer = 0; peer < exchange.ranks(); ++peer)
      trace.name_thread(rank, observe::TraceThread::kFirstLane + peer,
                        fmt::format("from {}", peer));
  }
}

int run(std::vector<std::string> arguments) {
  std::string path;
  if (!arguments.empty() && arguments.back().starts_with(kTraceOption)) {
    path = arguments.back().substr(kTraceOption.size());
    arguments.pop_back();
  }
  const SimulatorTask task = read_simulator_arguments(arguments);
  observe::Trace trace;
  if (!path.empty()) name_ranks(trace, task.step.exchange);
  const StepResult result = run_engine(task.pool, task.step, path.empty() ? nullptr : &trace);
  if (!path.empty()) trace.save(path);
  std::printf("%s\n", to_text(result).c_str());
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
