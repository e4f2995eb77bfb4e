// The meeting place of a group in shared memory: every rank publishes its call and the positions of
// its buffers, waits for all, and then reads and writes the others' buffers directly.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "artel/comm/collectives/operation.h"
#include "artel/comm/connection/patience.h"
#include "artel/comm/shm/segment.h"
#include "artel/comm/traffic.h"

namespace artel::comm::shm {

// Staging memory of a rank, for buffers that are not in the arena.
constexpr size_t kStagingBytes = 256 << 10;
constexpr size_t kMaxBuffers = 64;

class Channel {
 public:
  static size_t bytes_needed(int members);

  // `members` are ranks of the segment in the order of the group; `memory` is zeroed and the same
  // in all processes. Segment, memory and meter outlive the channel. Used by one thread at a time.
  Channel(Segment& segment, std::span<const int> members, std::byte* memory,
          const TrafficMeter& traffic);

  int size() const { return static_cast<int>(members_.size()); }
  int rank() const { return rank_; }

  // Publishes the operation and up to kMaxBuffers buffers of `bytes`, waits for all ranks, and
  // compares the operations. Throws if they differ.
  void meet(Patience& patience, std::span<std::byte* const> buffers = {}, size_t bytes = 0);
  // True if these bytes can be published in place.
  bool shares(const std::byte* data, size_t bytes) const { return segment_.contains(data, bytes); }
  // After `meet`: true if every buffer of every rank is in shared memory.
  bool reachable() const { return reachable_; }
  // After `meet`, if reachable: buffer `index` of a rank, in this process's addresses.
  std::byte* buffer(int rank, size_t index = 0) const;

  // Counts the bytes that this rank and another one exchange through each other's memory.
  void count(int rank, size_t sent, size_t received) const {
    traffic_[members_[static_cast<size_t>(rank)]].count_sent(sent);
    traffic_[members_[static_cast<size_t>(rank)]].count_received(received);
  }

  // Waits until all ranks have got this far.
  void sync(Patience& patience);

  // Runs part(0) .. part(size() - 1), each once, spread over the ranks, and returns when all are
  // done. Each rank takes the part with its own number; where ranks share cores, a running rank
  // also takes the parts of ranks that are not running.
  template <typename Part>
  void share_parts(Patience& patience, Part&& part) {
    if (!crowded()) {
      part(rank_);
      sync(patience);
      return;
    }
    parts_ += size();
    while (const std::optional<int> index = claim_part()) {
      part(*index);
      finish_part();
    }
    await_parts(patience);
  }

  // The kStagingBytes of a rank for this pass or, with `ahead`, a later one. Write your own, meet
  // or sync, then read the others'. Three sets alternate, so the next pass may be written while
  // this one is read.
  std::byte* staging(int rank, uint32_t ahead = 0) const;
  void next_staging() { ++passes_; }
  // True if ranks share cores, so each sync is a context switch.
  bool crowded() const { return segment_.crowded(); }

 private:
  struct Notice;
  struct Slot;
  struct Gate;

  Gate& gate() const;
  Slot& slot(int rank) const;
  const Notice& notice(int rank) const;
  bool is_here(int rank) const;
  bool all_here() const;
  bool occupies_core_of_missing_rank(int own) const;
  std::optional<int> claim_part();
  void finish_part();
  void await_parts(Patience& patience);

  Segment& segment_;
  std::vector<int> members_;
  int rank_ = 0;
  std::byte* memory_;
  const TrafficMeter& traffic_;
  uint32_t syncs_ = 0;
  uint32_t meetings_ = 0;
  uint32_t passes_ = 0;
  uint32_t parts_ = 0;  // of all share_parts so far
  bool reachable_ = false;
};

}  // namespace artel::comm::shm
