#include "artel/comm/collectives/shared_collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "artel/base/pages.h"

namespace artel::comm {
namespace {

// Data up to this size is published as a copy, which every rank sums for itself: one barrier
// instead of two.
constexpr size_t kCopiedBytes = 8 << 10;
// Every rank sums the copies as long as they do not exceed this in total.
constexpr size_t kFlatBytes = 256 << 10;
// Bytes staged at a time: all of them stay in the second-level caches, unless a sync costs more
// than that gains.
constexpr size_t kPieceBytes = 64 << 10;
constexpr size_t kCrowdedPieceBytes = shm::kStagingBytes;
// Bytes of other ranks' memory read at a time by collectives that give each rank only its part.
constexpr size_t kScatteredBytes = 4 << 20;

struct Slice {
  size_t begin;
  size_t end;
};

// Part `rank` of `bytes`, cut at cache lines.
Slice slice_of(size_t bytes, int size, int rank) {
  constexpr size_t kLine = 64;
  const size_t lines = (bytes + kLine - 1) / kLine;
  const auto cut = [&](size_t part) { return std::min(lines * part / size * kLine, bytes); };
  return {cut(rank), cut(rank + 1)};
}

// Calls count(rank) for each other rank, which returns the bytes given to it and taken from it.
template <typename Count>
void count_others(const shm::Channel& channel, Count count) {
  for (int rank = 0; rank < channel.size(); ++rank) {
    if (rank == channel.rank()) continue;
    const auto [sent, received] = count(rank);
    channel.count(rank, sent, received);
  }
}

// Counts an all_reduce in which each rank adds up its slice of the held(rank) buffers of `bytes` of
// every rank and gives the sum to all. A slice counts for its rank, whichever rank has added it.
template <typename Held>
void count_slices(const shm::Channel& channel, size_t bytes, Held held) {
  const auto length = [&](int rank) {
    const Slice slice = slice_of(bytes, channel.size(), rank);
    return slice.end - slice.begin;
  };
  const size_t own = length(channel.rank());
  count_others(channel, [&](int rank) {
    return std::pair(length(rank) * held(channel.rank()) + own, own * held(rank) + length(rank));
  });
}

// All-reduce of data outside the arena, piece by piece. A rank stages its data for the others, adds
// up its own slice, and copies the slices of the others, so it reads and writes every byte twice.
// Each piece takes one sync, because the next piece is staged before it.
class StagedAllReduce {
 public:
  StagedAllReduce(shm::Channel& channel, std::span<std::byte> data, ElementType type,
                  const Reduction& reduction)
      : channel_(channel),
        data_(data),
        type_(type),
        reduction_(reduction),
        piece_bytes_(channel.crowded() ? kCrowdedPieceBytes : kPieceBytes) {}

  void run(Patience& patience) {
    stage(piece(0), 0);
    channel_.sync(patience);
    for (size_t begin = 0; begin < data_.size(); begin += piece_bytes_) {
      reduce(piece(begin));
      stage(piece(begin + piece_bytes_), 1);
      channel_.sync(patience);
      collect(piece(begin));
      channel_.next_staging();
    }
  }

 private:
  std::span<std::byte> piece(size_t begin) const {
    if (begin >= data_.size()) return {};
    return data_.subspan(begin, std::min(piece_bytes_, data_.size() - begin));
  }

  // Calls use(owner, slice) for the slice of every other rank.
  template <typename Use>
  void for_others(std::span<std::byte> piece, Use use) const {
    for (int owner = 0; owner < channel_.size(); ++owner) {
      if (owner == channel_.rank() || piece.empty()) continue;
      use(owner, slice_of(piece.size(), channel_.size(), owner));
    }
  }

  void stage(std::span<std::byte> piece, uint32_t ahead) const {
    std::byte* const staging = channel_.staging(channel_.rank(), ahead);
    for_others(piece, [&](int, Slice slice) {
      std::memcpy(staging + slice.begin, piece.data() + slice.begin, slice.end - slice.begin);
    });
  }

  void reduce(std::span<std::byte> piece) const {
    const Slice mine = slice_of(piece.size(), channel_.size(), channel_.rank());
    std::byte* const own = piece.data() + mine.begin;
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < channel_.size(); ++rank)
      sources.push_back(rank == channel_.rank() ? own : channel_.staging(rank) + mine.begin);
    const std::array targets{own, channel_.staging(channel_.rank()) + mine.begin};
    combine(reduction_, type_, sources, targets, (mine.end - mine.begin) / size_of(type_),
            channel_.size());
  }

  void collect(std::span<std::byte> piece) const {
    for_others(piece, [&](int owner, Slice slice) {
      std::memcpy(piece.data() + slice.begin, channel_.staging(owner) + slice.begin,
                  slice.end - slice.begin);
    });
  }

  shm::Channel& channel_;
  std::span<std::byte> data_;
  ElementType type_;
  const Reduction& reduction_;
  size_t piece_bytes_;
};

}  // namespace

void all_reduce_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                       ElementType type, const Reduction& reduction) {
  const int size = channel.size();
  std::byte* const own = data.data();
  const bool copied = data.size() <= kCopiedBytes ||
                      (data.size() <= kPieceBytes && !channel.shares(own, data.size()));
  std::byte* const shown = copied ? channel.staging(channel.rank()) : own;
  if (copied && !data.empty()) std::memcpy(shown, own, data.size());
  channel.meet(patience, {&shown, 1}, data.size());
  if (!channel.reachable()) {
    count_slices(channel, data.size(), [](int) { return size_t{1}; });
    StagedAllReduce(channel, data, type, reduction).run(patience);
    return;
  }
  std::vector<std::byte*> buffers(size);
  bool flat = data.size() * size <= kFlatBytes;
  for (int rank = 0; rank < size; ++rank) {
    buffers[rank] = channel.buffer(rank);
    flat = flat && buffers[rank] == channel.staging(rank);
  }
  if (data.size() <= kPieceBytes) channel.next_staging();
  if (flat) {
    count_others(channel, [&](int) { return std::pair(data.size(), data.size()); });
    const std::vector<const std::byte*> sources(buffers.begin(), buffers.end());
    combine(reduction, type, sources, {&own, 1}, data.size() / size_of(type), size);
    return;
  }
  count_slices(channel, data.size(), [](int) { return size_t{1}; });
  std::vector<std::byte*> targets(size);
  std::vector<const std::byte*> sources(size);
  channel.share_parts(patience, [&](int part) {
    const Slice slice = slice_of(data.size(), size, part);
    for (int rank = 0; rank < size; ++rank)
      sources[rank] = targets[rank] = buffers[rank] + slice.begin;
    combine(reduction, type, sources, targets, (slice.end - slice.begin) / size_of(type), size);
  });
  if (copied) std::memcpy(own, shown, data.size());
}

void broadcast_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                      int root) {
  const bool is_root = channel.rank() == root;
  std::byte* const own = data.data();
  channel.meet(patience, {&own, 1}, data.size());
  count_others(channel, [&](int rank) {
    return std::pair(is_root ? data.size() : 0, rank == root ? data.size() : 0);
  });
  if (channel.reachable()) {
    if (!is_root) std::memcpy(own, channel.buffer(root), data.size());
    channel.sync(patience);
    return;
  }
  for (size_t begin = 0; begin < data.size(); begin += shm::kStagingBytes) {
    const size_t bytes = std::min(shm::kStagingBytes, data.size() - begin);
    if (is_root) std::memcpy(channel.staging(root), own + begin, bytes);
    channel.sync(patience);
    if (!is_root) std::memcpy(own + begin, channel.staging(root), bytes);
    channel.next_staging();
  }
}

bool lane_reduce_shared(shm::Channel& channel, Patience& patience, const LaneNodes& nodes,
                        std::span<std::byte* const> partials, std::span<std::byte> output,
                        ElementType type, const Reduction& reduction, size_t divisor) {
  const size_t bytes = output.size();
  const bool flat = bytes <= kCopiedBytes && nodes.tree().nodes().size() * bytes <= kFlatBytes;
  std::vector<std::byte*> shown(partials.begin(), partials.end());
  if (flat)
    for (size_t i = 0; i < shown.size(); ++i) {
      shown[i] = channel.staging(channel.rank()) + i * bytes;
      if (bytes > 0) std::memcpy(shown[i], partials[i], bytes);
    }
  else
    shown.push_back(output.data());
  channel.meet(patience, shown, bytes);
  if (!channel.reachable()) return false;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  sources.reserve(nodes.tree().nodes().size());
  targets.reserve(channel.size());
  const auto add = [&](Slice slice) {
    sources.clear();
    targets.clear();
    if (flat) targets.push_back(output.data());
    for (int rank = 0; rank < channel.size(); ++rank) {
      const size_t own = nodes.of(rank).size();
      for (size_t i = 0; i < own; ++i) sources.push_back(channel.buffer(rank, i) + slice.begin);
      if (!flat) targets.push_back(channel.buffer(rank, own) + slice.begin);
    }
    nodes.tree().add(sources, targets, type, (slice.end - slice.begin) / size_of(type), reduction,
                     divisor);
  };
  const auto held = [&](int rank) { return nodes.of(rank).size(); };
  if (flat) {
    count_others(channel, [&](int rank) {
      return std::pair(bytes * held(channel.rank()), bytes * held(rank));
    });
    add({0, bytes});
    channel.next_staging();
  } else {
    count_slices(channel, bytes, held);
    channel.share_parts(patience, [&](int part) { add(slice_of(bytes, channel.size(), part)); });
  }
  return true;
}

bool lane_reduce_scatter_shared(shm::Channel& channel, Patience& patience, const LaneNodes& nodes,
                                std::span<std::byte* const> partials, std::span<std::byte> output,
                                std::span<const size_t> offsets, ElementType type) {
  channel.meet(patience, std::vector<std::byte*>(partials.begin(), partials.end()), output.size());
  if (!channel.reachable()) return false;
  const size_t begin = offsets[channel.rank()], end = offsets[channel.rank() + 1];
  count_others(channel, [&](int rank) {
    return std::pair((offsets[rank + 1] - offsets[rank]) * nodes.of(channel.rank()).size(),
                     (end - begin) * nodes.of(rank).size());
  });
  // A caller that wants only its part of a sum is short of memory, and pages read from other ranks
  // count, too. So they are read in pieces.
  for (size_t at = begin; at < end; at += kScatteredBytes) {
    const size_t bytes = std::min(kScatteredBytes, end - at);
    std::vector<const std::byte*> sources;
    for (int rank = 0; rank < channel.size(); ++rank)
      for (size_t i = 0; i < nodes.of(rank).size(); ++i)
        sources.push_back(channel.buffer(rank, i) + at);
    std::byte* const target = output.data() + at;
    nodes.tree().add(sources, {&target, 1}, type, bytes / size_of(type));
    for (int rank = 0; rank < channel.size(); ++rank)
      for (size_t i = 0; rank != channel.rank() && i < nodes.of(rank).size(); ++i)
        look_away({channel.buffer(rank, i) + at, bytes});
  }
  channel.sync(patience);
  return true;
}

bool read_shared(shm::Channel& channel, Patience& patience, std::span<const std::byte> input,
                 const std::function<void(int rank, const std::byte* data)>& use) {
  auto* shown = const_cast<std::byte*>(input.data());
  if (input.size() <= shm::kStagingBytes) {
    shown = channel.staging(channel.rank());
    if (!input.empty()) std::memcpy(shown, input.data(), input.size());
  }
  channel.meet(patience, {&shown, 1}, input.size());
  channel.next_staging();
  if (!channel.reachable()) return false;
  for (int rank = 0; rank < channel.size(); ++rank) use(rank, channel.buffer(rank));
  channel.sync(patience);
  return true;
}

bool reduce_shared(shm::Channel& channel, Patience& patience, std::span<const std::byte> input,
                   size_t offset, std::span<std::byte> output, ElementType type,
                   const Reduction& reduction) {
  std::vector<const std::byte*> sources;
  return read_shared(channel, patience, input, [&](int rank, const std::byte* data) {
    sources.push_back(data + offset);
    if (rank + 1 < channel.size() || output.empty()) return;
    std::byte* const target = output.data();
    combine(reduction, type, sources, {&target, 1}, output.size() / size_of(type), channel.size());
  });
}

}  // namespace artel::comm
