#include "artel/comm/gloo/neighbours.h"

#include <algorithm>

namespace artel::comm::gloo {
namespace {

int index_of(int rank, std::span<const int> ranks) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

}  // namespace

Neighbours::Neighbours(std::vector<int> ranks, int own_rank, const std::string& name,
                       Deadline deadline, std::function<void()> meanwhile)
    : ranks_(std::move(ranks)),
      included_(ranks_.size(), false),
      segment_({.name = name,
                .rank = index_of(own_rank, ranks_),
                .size = static_cast<int>(ranks_.size()),
                .arena_bytes = 1,
                .deadline = deadline,
                .meanwhile = std::move(meanwhile)}),
      mailbox_(segment_, ranks_),
      thread_([this] { attend(); }) {}

Neighbours::~Neighbours() {
  {
    const std::lock_guard lock(mutex_);
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

void Neighbours::attend() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (wanted_ == 0) {
      changed_.wait(lock, [this] { return stopping_ || wanted_ > 0; });
      continue;
    }
    lock.unlock();
    mailbox_.attend(0.1);
    lock.lock();
  }
}

Neighbours::Attention::Attention(Neighbours* neighbours)
    : neighbours_(neighbours != nullptr && neighbours->mailbox_.busy() ? neighbours : nullptr) {
  if (neighbours_ == nullptr) return;
  {
    const std::lock_guard lock(neighbours_->mutex_);
    ++neighbours_->wanted_;
  }
  neighbours_->changed_.notify_one();
}

Neighbours::Attention::~Attention() {
  if (neighbours_ == nullptr) return;
  const std::lock_guard lock(neighbours_->mutex_);
  --neighbours_->wanted_;
}

}  // namespace artel::comm::gloo
