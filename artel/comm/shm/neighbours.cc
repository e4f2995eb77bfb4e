#include "artel/comm/shm/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/random.h"
#include "artel/comm/connection/patience.h"

namespace artel::comm::shm {
namespace {

// Timeout for the ranks on a machine to share memory. All have joined already.
constexpr double kNeighbourSeconds = 10;
constexpr uint64_t kFirstTag = ~uint64_t{0};  // no group has it

int index_of(int rank, std::span<const int> ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

}  // namespace

Neighbours::Neighbours(std::vector<int> ranks, int own_rank, const std::string& name,
                       const std::string& token, Deadline deadline, std::function<void()> meanwhile,
                       const TrafficMeter& traffic)
    : ranks_(std::move(ranks)),
      included_(ranks_.size(), false),
      segment_({.name = name,
                .token = token,
                .rank = index_of(own_rank, ranks_),
                .size = static_cast<int>(ranks_.size()),
                .arena_bytes = 1,
                .deadline = deadline,
                .meanwhile = std::move(meanwhile)}),
      mailbox_(segment_, ranks_, traffic),
      thread_([this] { attend(); }) {}

Neighbours::~Neighbours() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  mailbox_.wake();
  thread_.join();
}

void Neighbours::add(int rank) { included_[index_of(rank, ranks_)] = true; }

int Neighbours::place_of(int rank) const {
  const int place = index_of(rank, ranks_);
  return place >= 0 && included_[place] ? place : -1;
}

std::unique_ptr<Transfer> Neighbours::send(int rank, uint64_t tag,
                                           std::span<const std::byte> data) {
  return mailbox_.send(place_of(rank), tag, data);
}

std::unique_ptr<Transfer> Neighbours::receive(int rank, uint64_t tag, std::span<std::byte> data) {
  return mailbox_.receive(place_of(rank), tag, data);
}

void Neighbours::attend() try {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (wanted_ == 0) {
      changed_.wait(lock, [this]() ARTEL_REQUIRES(mutex_) { return stopping_ || wanted_ > 0; });
      continue;
    }
    lock.unlock();
    mailbox_.attend(0.1);
    lock.lock();
  }
} catch (const std::exception& error) {
  // This thread is not joined for its result, so the users of the group get the error.
  segment_.record_failure(ErrorKind::internal,
                          fmt::format("[comm shm] messages of rank {}: {}",
                                      ranks_[static_cast<size_t>(segment_.rank())], error.what()));
}

Neighbours::Attention::Attention(Neighbours* neighbours)
    : neighbours_(neighbours != nullptr && neighbours->mailbox_.busy() ? neighbours : nullptr) {
  if (neighbours_ == nullptr) return;
  {
    const MutexLock lock(neighbours_->mutex_);
    ++neighbours_->wanted_;
  }
  neighbours_->changed_.notify_one();
}

Neighbours::Attention::~Attention() {
  if (neighbours_ == nullptr) return;
  const MutexLock lock(neighbours_->mutex_);
  --neighbours_->wanted_;
}

std::vector<std::string> exchange_texts(Transport& transport, const std::vector<int>& ranks,
                                        const std::vector<std::string>& texts,
                                        std::string_view label, const GroupOptions& options) {
  Operation operation{.kind = Kind::barrier};
  operation.set_label(label);
  Patience patience(transport, operation, Deadline::after(options.join_timeout), options.watch);
  std::vector<std::string> theirs = texts;
  std::vector<std::pair<int, std::unique_ptr<Transfer>>> transfers;
  for (const int peer : ranks) {
    if (peer == transport.rank()) continue;
    transfers.emplace_back(
        peer, transport.receive(peer, kFirstTag, std::as_writable_bytes(std::span(theirs[peer]))));
    transfers.emplace_back(peer,
                           transport.send(peer, kFirstTag, std::as_bytes(std::span(texts[peer]))));
  }
  for (const auto& [peer, transfer] : transfers) patience.wait_for(peer, *transfer);
  return theirs;
}

// Two ranks on a machine use shared memory if both have it, which they tell each other.
std::unique_ptr<Neighbours> meet_neighbours(Transport& transport,
                                            const std::vector<Whereabouts>& places,
                                            const GroupOptions& options,
                                            const std::function<void()>& look) {
  const int own = transport.rank();
  std::vector<int> ranks;
  for (int rank = 0; rank < transport.size(); ++rank)
    if (places[rank].machine == places[own].machine) ranks.push_back(rank);
  if (ranks.size() < 2 || places[own].machine.empty()) return nullptr;
  std::unique_ptr<Neighbours> neighbours;
  try {
    const auto name = fmt::format("gloo {:x}", hash_name(places[ranks[0]].contact));
    // A neighbour may die here.
    neighbours =
        std::make_unique<Neighbours>(ranks, own, name, options.token,
                                     Deadline::after(kNeighbourSeconds), look, transport.traffic());
  } catch (const Error&) {
    look();  // TCP reaches them as well, if all are alive
  }
  const std::string mine(1, neighbours != nullptr ? 'y' : 'n');
  const std::vector<std::string> theirs = exchange_texts(
      transport, ranks, std::vector<std::string>(transport.size(), mine), "neighbours", options);
  if (!neighbours) return nullptr;
  for (const int peer : ranks)
    if (peer != own && theirs[peer] == "y") neighbours->add(peer);
  return neighbours;
}

}  // namespace artel::comm::shm
