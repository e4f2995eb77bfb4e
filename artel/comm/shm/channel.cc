#include "artel/comm/shm/channel.h"

#include <algorithm>

namespace artel::comm::shm {

// Double buffering: a rank may enter the next call while others still read its notice of this one.
// The first two buffers, enough for most calls, share the cache line of the operation.
struct alignas(64) Channel::Notice {
  Operation operation;
  std::array<uint64_t, kMaxBuffers> offsets;  // the first one is kNowhere if some are not shared
};

// An offset that no buffer has, because the segment begins with its header.
constexpr uint64_t kNowhere = 0;

struct alignas(64) Channel::Slot {
  std::atomic<uint32_t> arrived;  // number of syncs this rank has reached
  std::atomic<int32_t> core;      // core it ran on at the last of them
  std::atomic<uint32_t> working;  // 1 while it works on a part
  // Value of parts_ when this rank's part was last claimed. Other ranks do not poll it.
  alignas(64) std::atomic<uint32_t> taken;
  Notice notices[2];
};

struct Channel::Gate {
  Event all_here;    // rung by the last rank to arrive, if any rank sleeps
  Event parts_done;  // number of finished parts; rung when the last part of a call is done
};

constexpr size_t kStagingSets = 3;

size_t Channel::bytes_needed(int members) {
  return sizeof(Gate) + members * (sizeof(Slot) + kStagingSets * kStagingBytes);
}

Channel::Channel(Segment& segment, std::span<const int> members, std::byte* memory,
                 const TrafficMeter& traffic)
    : segment_(segment),
      members_(members.begin(), members.end()),
      memory_(memory),
      traffic_(traffic) {
  const auto self = std::find(members_.begin(), members_.end(), segment.rank());
  rank_ = static_cast<int>(self - members_.begin());
}

Channel::Gate& Channel::gate() const { return *reinterpret_cast<Gate*>(memory_); }

Channel::Slot& Channel::slot(int rank) const {
  return reinterpret_cast<Slot*>(memory_ + sizeof(Gate))[rank];
}

const Channel::Notice& Channel::notice(int rank) const { return slot(rank).notices[meetings_ % 2]; }

std::byte* Channel::staging(int rank, uint32_t ahead) const {
  const size_t set = (passes_ + ahead) % kStagingSets;
  return memory_ + sizeof(Gate) + members_.size() * sizeof(Slot) +
         (rank * kStagingSets + set) * kStagingBytes;
}

void Channel::meet(Patience& patience, std::span<std::byte* const> buffers, size_t bytes) {
  segment_.throw_if_failed();  // ranks may arrive in time although the group has failed
  ++meetings_;
  Notice& mine = slot(rank_).notices[meetings_ % 2];
  mine.operation = patience.operation();
  mine.offsets[0] = ~kNowhere;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (i == kMaxBuffers || !segment_.contains(buffers[i], bytes)) {
      mine.offsets[0] = kNowhere;
      break;
    }
    mine.offsets[i] = segment_.offset_of(buffers[i]);
  }
  sync(patience);
  reachable_ = true;
  for (int peer = 0; peer < size(); ++peer) {
    const Notice& theirs = notice(peer);
    if (!theirs.operation.matches(mine.operation))
      throw Error(ErrorKind::communication, mismatch_message(members_[rank_], mine.operation,
                                                             members_[peer], theirs.operation));
    reachable_ = reachable_ && theirs.offsets[0] != kNowhere;
  }
}

std::byte* Channel::buffer(int rank, size_t index) const {
  return segment_.at(notice(rank).offsets[index]);
}

bool Channel::is_here(int rank) const { return reached(slot(rank).arrived.load(), syncs_); }

bool Channel::all_here() const {
  for (int peer = 0; peer < size(); ++peer)
    if (!is_here(peer)) return false;
  return true;
}

// A missing rank cannot arrive while we occupy the core it was on.
bool Channel::occupies_core_of_missing_rank(int own) const {
  for (int peer = 0; peer < size(); ++peer)
    if (!is_here(peer) && slot(peer).core.load(std::memory_order_relaxed) == own) return true;
  return false;
}

// Takes at most one sleep and one wake-up per rank, because all ranks sleep on one event, which the
// last rank rings. The last rank cannot miss a sleeper: it records its arrival before it looks for
// sleepers, and a sleeper registers before it checks the arrivals.
void Channel::sync(Patience& patience) {
  const int core = sched_getcpu();
  slot(rank_).core.store(core, std::memory_order_relaxed);
  slot(rank_).arrived.store(++syncs_);
  if (all_here()) {
    if (gate().all_here.sleepers.load() != 0) ring(gate().all_here);
    return;
  }
  for (int peer = 0; peer < size(); ++peer)
    if (!is_here(peer))
      patience.wait_for(members_[peer], [&] {
        await(
            gate().all_here, Spin::for_ranks(crowded() || occupies_core_of_missing_rank(core)),
            [&](uint32_t) { return all_here(); }, [&] { return patience.slice(); });
        return is_here(peer);
      });
}

// Claims this rank's own part first, because its pages are in this core's cache.
std::optional<int> Channel::claim_part() {
  for (int i = 0; i < size(); ++i) {
    const int part = (rank_ + i) % size();
    uint32_t before = parts_ - size();
    if (!slot(part).taken.compare_exchange_strong(before, parts_)) continue;
    slot(rank_).working = 1;
    return part;
  }
  return {};
}

void Channel::finish_part() {
  slot(rank_).working = 0;
  Event& done = gate().parts_done;
  if (done.value.fetch_add(1) + 1 == parts_ && done.sleepers.load() != 0) wake(done);
}

void Channel::await_parts(Patience& patience) {
  const auto done = [&](uint32_t value) { return reached(value, parts_); };
  Event& event = gate().parts_done;
  if (done(event.value.load(std::memory_order_acquire))) return;
  int worker = 0;  // the rank being waited for
  while (worker + 1 < size() && slot(worker).working == 0) ++worker;
  patience.wait_for(members_[worker], [&] {
    return await(event, Spin::for_ranks(true), done, [&] { return patience.slice(); });
  });
}

}  // namespace artel::comm::shm
