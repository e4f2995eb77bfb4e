#include "artel/comm/shm/segment.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "artel/base/pages.h"
#include "artel/comm/failure.h"
#include "artel/comm/shm/rendezvous.h"

namespace artel::comm::shm {
namespace {

int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

constexpr size_t kPage = 4096;
// Below this, freed memory keeps its pages: giving them back costs more than they are worth.
constexpr size_t kReturnBytes = 1 << 20;

size_t align_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Large memory takes no pages before it is used.
void clear(std::byte* data, size_t bytes) {
  const std::span<std::byte> memory = {data, bytes};
  if (bytes <= kReturnBytes) {
    std::memset(data, 0, bytes);
    return;
  }
  const std::span<std::byte> pages = pages_in(memory);
  forget(pages);
  std::memset(data, 0, pages.data() - data);
  std::byte* const end = pages.data() + pages.size();
  std::memset(end, 0, data + bytes - end);
}

int open_process(pid_t process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
  return -1;
#endif
}

bool has_ended(int process_handle) {
  pollfd poll_entry{process_handle, POLLIN, 0};
  return poll(&poll_entry, 1, 0) == 1;
}

// For systems that refuse pidfd_open: true if a process has that number, possibly a different one
// by now. A process that has ended but is still listed is a zombie.
bool exists(pid_t process) {
  if (kill(process, 0) != 0 && errno == ESRCH) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  // "4242 (name) Z ...": the name may contain anything.
  if (!std::getline(file, line)) return true;
  const size_t end = line.rfind(')');
  return end == line.npos || end + 2 >= line.size() || line[end + 2] != 'Z';
}

}  // namespace

struct Segment::Header {
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> failure_state;  // 0 none, 1 being written, 2 readable
  std::atomic<uint32_t> failure_kind;
  std::array<char, 1000> failure_cause;
};

// Offsets in the segment: header, cards, bells, rings, arenas.
class Segment::Layout {
 public:
  Layout(int size, size_t arena_bytes) : ranks_(size), arena_bytes_(arena_bytes) {}
  size_t card(int rank) const { return kPage + rank * sizeof(Card); }
  size_t bell(int rank) const { return card(ranks_) + rank * sizeof(Event); }
  size_t ring(int from, int to) const {
    return align_up(bell(ranks_), kPage) + (from * ranks_ + to) * sizeof(Ring);
  }
  size_t arena(int rank) const { return align_up(ring(ranks_, 0), kPage) + rank * arena_bytes_; }

 private:
  size_t ranks_;
  size_t arena_bytes_;
};

Segment::Segment(const SegmentOptions& options)
    : rank_(options.rank),
      size_(options.size),
      crowded_(options.size > static_cast<int>(std::thread::hardware_concurrency())) {
  static_assert(sizeof(Header) <= kPage);
  require(size_ > 0 && rank_ >= 0 && rank_ < size_, ErrorKind::invalid_argument,
          "[comm shm] rank: got {} of {}, expected 0 <= rank < size", rank_, size_);
  if (rank_ == 0)
    create(options);
  else
    join(options);
  free_[Layout(size_, arena_bytes_).arena(rank_)] = arena_bytes_;
  card(rank_).process = getpid();
  card(rank_).give_sign_of_life();
  header().joined.fetch_add(1);
  wait_for_all(options);
  for (int peer = 0; peer < size_; ++peer) watch(card(peer).process);
}

void Card::give_sign_of_life() { last_seen = steady_nanoseconds(); }

double Card::silent_seconds() const {
  return static_cast<double>(steady_nanoseconds() - last_seen) * 1e-9;
}

Segment::~Segment() {
  if (base_ == nullptr) return;
  card(rank_).left = 1;
  for (int peer = 0; peer < size_; ++peer) shm::ring(bell(peer));
  munmap(base_, bytes_);
}

void Segment::create(const SegmentOptions& options) {
  size_t arena_bytes = options.arena_bytes;
  if (arena_bytes == 0)
    arena_bytes = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  Host host(options.name, options.deadline);
  FileHandle file(memfd_create("artel", MFD_CLOEXEC));
  require(file.get() >= 0, ErrorKind::io, "[comm shm] memfd_create: {}", std::strerror(errno));
  const size_t bytes = Layout(size_, align_up(arena_bytes, kPage)).arena(size_);
  require(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0, ErrorKind::memory,
          "[comm shm] shared memory of {} bytes: {}", bytes, std::strerror(errno));
  map(std::move(file), align_up(arena_bytes, kPage));
  host.admit_all({.token = options.token,
                  .size = size_,
                  .arena_bytes = arena_bytes_,
                  .meanwhile = options.meanwhile},
                 file_.get());
}

void Segment::join(const SegmentOptions& options) {
  Admission admission = ask_to_join(
      options.name,
      {.token = options.token, .size = size_, .rank = rank_, .meanwhile = options.meanwhile},
      options.deadline);
  map(std::move(admission.file), admission.arena_bytes);
}

void Segment::map(FileHandle file, size_t arena_bytes) {
  file_ = std::move(file);
  arena_bytes_ = arena_bytes;
  bytes_ = Layout(size_, arena_bytes_).arena(size_);
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  require(memory != MAP_FAILED, ErrorKind::memory,
          "[comm shm] mapping {} bytes of shared memory: {}; try a smaller arena", bytes_,
          std::strerror(errno));
  base_ = static_cast<std::byte*>(memory);
  madvise(base_, bytes_, MADV_HUGEPAGE);  // a hint: many machines ignore it
}

void Segment::map_at(uint64_t offset, std::span<std::byte> address, bool shared) const {
  const int flags = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED | MAP_NORESERVE;
  void* const memory = mmap(address.data(), address.size(), PROT_READ | PROT_WRITE, flags,
                            file_.get(), static_cast<off_t>(offset));
  require(memory != MAP_FAILED, ErrorKind::memory,
          "[comm shm] mapping {} bytes of shared memory at a given address: {}", address.size(),
          std::strerror(errno));
}

void Segment::wait_for_all(const SegmentOptions& options) {
  while (header().joined < static_cast<uint32_t>(size_)) {
    throw_if_failed();
    require(!options.deadline.passed(), ErrorKind::timeout,
            "[comm shm] group '{}': got {} of {} ranks before the deadline", options.name,
            header().joined.load(), size_);
    if (options.meanwhile) options.meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Segment::Header& Segment::header() const { return *reinterpret_cast<Header*>(base_); }

Card& Segment::card(int rank) const {
  return *reinterpret_cast<Card*>(base_ + Layout(size_, arena_bytes_).card(rank));
}
Event& Segment::bell(int rank) const {
  return *reinterpret_cast<Event*>(base_ + Layout(size_, arena_bytes_).bell(rank));
}
Ring& Segment::ring(int from, int to) const {
  return *reinterpret_cast<Ring*>(base_ + Layout(size_, arena_bytes_).ring(from, to));
}

void Segment::record_failure(ErrorKind kind, std::string_view cause) noexcept {
  uint32_t none = 0;
  if (!header().failure_state.compare_exchange_strong(none, 1)) return;
  const size_t length = std::min(cause.size(), header().failure_cause.size() - 1);
  std::copy_n(cause.begin(), length, header().failure_cause.begin());
  header().failure_kind = static_cast<uint32_t>(kind);
  header().failure_state = 2;
  for (int peer = 0; peer < size_; ++peer) shm::ring(bell(peer));
}

bool Segment::failed() const { return header().failure_state.load(std::memory_order_acquire) == 2; }

void Segment::throw_if_failed() const {
  if (failed())
    throw failure_error(static_cast<ErrorKind>(header().failure_kind.load()),
                        header().failure_cause.data());
}

bool Segment::is_dead(int rank) const {
  if (rank == rank_ || card(rank).left != 0) return false;
  const Watch& watch = watches_[rank];
  if (watch.handle.get() >= 0) return has_ended(watch.handle.get()) && card(rank).left == 0;
  return watch.visible && !exists(watch.process) && card(rank).left == 0;
}

// A process that cannot be seen from here, in another namespace, is only known by its signs of
// life.
void Segment::watch(pid_t process) {
  FileHandle handle(open_process(process));
  const bool visible = handle.get() >= 0 || exists(process);
  watches_.push_back({std::move(handle), process, visible});
}

std::byte* Segment::allocate(size_t bytes) {
  const size_t wanted = align_up(std::max<size_t>(bytes, 1), 64);
  const MutexLock lock(mutex_);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& piece) { return piece.second >= wanted; });
  require(found != free_.end(), ErrorKind::memory,
          "[comm shm] arena: no {} bytes free in one piece of the arena of {} bytes; try a larger "
          "arena",
          bytes, arena_bytes_);
  const auto [offset, available] = *found;
  free_.erase(found);
  if (available > wanted) free_[offset + wanted] = available - wanted;
  allocated_[offset] = wanted;
  clear(at(offset), bytes);
  return at(offset);
}

void Segment::free(std::byte* data) noexcept {
  const MutexLock lock(mutex_);
  const auto found = allocated_.find(offset_of(data));
  if (found == allocated_.end()) return;
  auto [offset, bytes] = *found;
  allocated_.erase(found);
  if (bytes > kReturnBytes) forget({at(offset), bytes});
  const auto next = free_.find(offset + bytes);
  if (next != free_.end()) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

bool Segment::contains(const std::byte* data, size_t bytes) const {
  return data >= base_ && data < base_ + bytes_ && contains(offset_of(data), bytes);
}

bool Segment::contains(uint64_t offset, size_t bytes) const {
  return offset >= Layout(size_, arena_bytes_).arena(0) && offset <= bytes_ &&
         bytes <= bytes_ - offset;
}

}  // namespace artel::comm::shm
