// The memory shared by the ranks on one machine: how they find it, and the status that they publish
// in it.
//
// Rank 0 creates an anonymous file and listens on a socket named after the group. The others
// connect and receive the file. There is no daemon, and nothing is left behind when processes die.
// The file is sparse: only touched pages take memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/mutex.h"
#include "artel/base/time.h"
#include "artel/comm/connection/file_handle.h"
#include "artel/comm/shm/event.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm::shm {

struct SegmentOptions {
  std::string name;   // the same on all ranks of a group, unique among groups that form at the same
                      // time
  std::string token;  // as for all ranks; a rank with another token is refused
  int rank = 0;
  int size = 1;
  size_t arena_bytes = 0;  // per rank; rank 0's value counts; 0 selects the machine's memory
  Deadline deadline = Deadline::after(60);
  std::function<void()> meanwhile = {};  // called periodically; ends the wait by throwing
};

// A rank's status as published to the others.
struct alignas(64) Card {
  std::atomic<int32_t> process;
  std::atomic<int64_t> last_seen;  // nanoseconds of the steady clock, common to all processes
  std::atomic<uint32_t> left;      // 1 after it has closed the group
  std::atomic<uint64_t> phase[(kPhaseBytes + 1) / sizeof(uint64_t)];  // ends with a zero
  std::atomic<uint64_t> vitals[kVitalsBytes / sizeof(uint64_t)];

  void give_sign_of_life();
  double silent_seconds() const;  // since the last one
};

// A ring of bytes from one rank to another.
constexpr size_t kRingBytes = 256 << 10;
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> consumed;
  alignas(64) std::byte data[kRingBytes];
};

class Segment {
 public:
  // Returns when all ranks have arrived. Throws at the deadline, or when refused.
  explicit Segment(const SegmentOptions& options);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // True if there are more ranks than cores.
  bool crowded() const { return crowded_; }
  Spin spin() const { return Spin::for_ranks(crowded_); }

  Card& card(int rank) const;
  Event& bell(int rank) const;  // rung when a ring of that rank needs attention
  Ring& ring(int from, int to) const;

  // The cause of the group's failure. The first one recorded stays.
  void record_failure(ErrorKind kind, std::string_view cause) noexcept;
  bool failed() const;
  void throw_if_failed() const;
  // True if the rank's process ended without leaving the group.
  bool is_dead(int rank) const;

  // Memory in this rank's arena, zeroed. Thread safe.
  std::byte* allocate(size_t bytes);
  void free(std::byte* data) noexcept;

  // Positions of arena memory that are the same in all processes.
  bool contains(const std::byte* data, size_t bytes) const;
  bool contains(uint64_t offset, size_t bytes) const;
  uint64_t offset_of(const std::byte* data) const { return data - base_; }
  std::byte* at(uint64_t offset) const { return base_ + offset; }
  // Maps the pages at this position over those at `address`; see Transport::map_place.
  void map_at(uint64_t offset, std::span<std::byte> address, bool shared) const;

 private:
  struct Header;
  class Layout;

  void create(const SegmentOptions& options);
  void join(const SegmentOptions& options);
  void map(FileHandle file, size_t arena_bytes);
  void wait_for_all(const SegmentOptions& options);
  Header& header() const;

  int rank_;
  int size_;
  bool crowded_;
  size_t arena_bytes_ = 0;
  size_t bytes_ = 0;
  FileHandle file_;
  std::byte* base_ = nullptr;
  // Detects the end of a rank's process.
  struct Watch {
    FileHandle handle;  // a pidfd, if available
    pid_t process;
    bool visible;  // from this process
  };
  void watch(pid_t process);
  std::vector<Watch> watches_;

  Mutex mutex_;
  std::map<uint64_t, size_t> free_ ARTEL_GUARDED_BY(mutex_);  // offset -> bytes, by offset
  std::map<uint64_t, size_t> allocated_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::comm::shm
