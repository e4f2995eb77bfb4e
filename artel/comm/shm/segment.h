// The memory that the ranks on one machine share, how they find it, and what they learn about each
// other through it.
//
// Rank 0 creates an anonymous file and waits on a socket whose name is the group's; the others
// connect and are given the file. Nothing is left behind when processes die, and there is no
// daemon. The file is sparse: only touched pages exist.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/comm/file_handle.h"
#include "artel/comm/shm/event.h"
#include "artel/comm/transport.h"

namespace artel::comm::shm {

struct SegmentOptions {
  std::string name;   // the same on all ranks of a group, unique among groups that form at the same
                      // time
  std::string token;  // ditto; a rank with another token is refused
  int rank = 0;
  int size = 1;
  size_t arena_bytes = 0;  // per rank; rank 0's value counts. 0: as much as the machine has memory
  Deadline deadline = Deadline::after(60);
  std::function<void()> meanwhile = {};  // called now and then; ends the wait by throwing
};

// What a rank tells the others about itself.
struct alignas(64) Card {
  std::atomic<int32_t> process;
  std::atomic<int64_t> last_seen;  // nanoseconds of the steady clock, common to all processes
  std::atomic<uint32_t> left;      // 1 after it has closed the group
  std::atomic<uint64_t> phase[(kPhaseBytes + 1) / sizeof(uint64_t)];  // ends with a zero
  std::atomic<uint64_t> vitals[kVitalsBytes / sizeof(uint64_t)];
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
  // Whether there are more ranks than cores.
  bool crowded() const { return crowded_; }
  Spin spin() const { return Spin::for_ranks(crowded_); }

  Card& card(int rank) const;
  Event& bell(int rank) const;  // rung when there is something to do in a ring of that rank
  Ring& ring(int from, int to) const;

  // The cause of the group's failure. The first one recorded stays.
  void record_failure(ErrorKind kind, std::string_view cause) noexcept;
  bool failed() const;
  void throw_if_failed() const;
  // Whether the rank's process ended without leaving the group.
  bool is_dead(int rank) const;

  // Memory in this rank's arena, zeroed. Thread safe.
  std::byte* allocate(size_t bytes);
  void free(std::byte* data) noexcept;

  // Positions of arena memory that are the same in all processes.
  bool contains(const std::byte* data, size_t bytes) const;
  bool contains(uint64_t offset, size_t bytes) const;
  uint64_t offset_of(const std::byte* data) const { return data - base_; }
  std::byte* at(uint64_t offset) const { return base_ + offset; }
  // Puts the pages at this position in place of those at `address`; see Transport::map_place.
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
  // How the end of a rank's process is noticed.
  struct Watch {
    FileHandle handle;  // a pidfd, where there is one
    pid_t process;
    bool visible;  // from this process
  };
  void watch(pid_t process);
  std::vector<Watch> watches_;

  std::mutex mutex_;
  std::map<uint64_t, size_t> free_;  // offset -> bytes, by offset
  std::map<uint64_t, size_t> allocated_;
};

}  // namespace artel::comm::shm
