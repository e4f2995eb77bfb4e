#include "artel/comm/shm/channel.h"

#include <algorithm>

namespace artel::comm::shm {

// Two of them in turn: a rank that is one meeting ahead must not overwrite what others still read.
struct Channel::Notice {
  Operation operation;
  uint32_t reachable;
  uint32_t buffers;
  std::array<uint64_t, kMaxBuffers> offsets;
};

struct alignas(64) Channel::Slot {
  Event arrived;  // how many syncs this rank has reached
  Notice notices[2];
};

size_t Channel::bytes_needed(int members) { return members * (sizeof(Slot) + 2 * kStagingBytes); }

Channel::Channel(Segment& segment, std::span<const int> members, std::byte* memory)
    : segment_(segment), members_(members.begin(), members.end()), memory_(memory) {
  const auto self = std::find(members_.begin(), members_.end(), segment.rank());
  rank_ = static_cast<int>(self - members_.begin());
}

Channel::Slot& Channel::slot(int rank) const { return reinterpret_cast<Slot*>(memory_)[rank]; }

const Channel::Notice& Channel::notice(int rank) const { return slot(rank).notices[meetings_ % 2]; }

std::byte* Channel::staging(int rank) const {
  return memory_ + members_.size() * sizeof(Slot) + (2 * rank + passes_ % 2) * kStagingBytes;
}

void Channel::meet(Patience& patience, std::span<std::byte* const> buffers, size_t bytes) {
  ++meetings_;
  Notice& mine = slot(rank_).notices[meetings_ % 2];
  mine.operation = patience.operation();
  mine.buffers = static_cast<uint32_t>(buffers.size());
  mine.reachable = buffers.size() <= kMaxBuffers ? 1 : 0;
  for (size_t i = 0; i < buffers.size() && mine.reachable != 0; ++i) {
    mine.reachable = segment_.contains(buffers[i], bytes) ? 1 : 0;
    mine.offsets[i] = segment_.offset_of(buffers[i]);
  }
  sync(patience);
  reachable_ = true;
  for (int peer = 0; peer < size(); ++peer) {
    const Notice& theirs = notice(peer);
    if (!theirs.operation.matches(mine.operation))
      throw Error(ErrorKind::communication, mismatch_message(members_[rank_], mine.operation,
                                                             members_[peer], theirs.operation));
    reachable_ = reachable_ && theirs.reachable != 0;
  }
}

std::byte* Channel::buffer(int rank, size_t index) const {
  return segment_.at(notice(rank).offsets[index]);
}

void Channel::sync(Patience& patience) {
  publish(slot(rank_).arrived, ++syncs_);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    Event& arrived = slot(peer).arrived;
    const auto there = [&](uint32_t value) { return reached(value, syncs_); };
    if (there(arrived.value.load(std::memory_order_acquire))) continue;
    patience.wait_for(members_[peer], [&] {
      return await(arrived, segment_.spin(), there, [&] { return patience.slice(); });
    });
  }
}

}  // namespace artel::comm::shm
