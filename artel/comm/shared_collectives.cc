#include "artel/comm/shared_collectives.h"

#include <algorithm>
#include <cstring>

namespace artel::comm {
namespace {

// Up to here everybody copies and adds everything: one meeting instead of two.
constexpr size_t kFlatBytes = 16 << 10;

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

std::vector<const std::byte*> staged(const shm::Channel& channel, size_t offset) {
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < channel.size(); ++rank)
    sources.push_back(channel.staging(rank) + offset);
  return sources;
}

// Data that is not in the arena, one staging buffer at a time. With two ranks each adds everything
// itself; with more, each adds a slice and the others copy it.
void all_reduce_staged(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                       ElementType type, const Reduction& reduction) {
  const size_t width = size_of(type);
  const int rank = channel.rank();
  for (size_t begin = 0; begin < data.size(); begin += shm::kStagingBytes) {
    const size_t bytes = std::min(shm::kStagingBytes, data.size() - begin);
    std::memcpy(channel.staging(rank), data.data() + begin, bytes);
    channel.sync(patience);
    const Slice mine =
        channel.size() == 2 ? Slice{0, bytes} : slice_of(bytes, channel.size(), rank);
    std::byte* const target =
        channel.size() == 2 ? data.data() + begin : channel.staging(rank) + mine.begin;
    combine(reduction, type, staged(channel, mine.begin), {&target, 1},
            (mine.end - mine.begin) / width, channel.size());
    if (channel.size() > 2) {
      channel.sync(patience);
      for (int owner = 0; owner < channel.size(); ++owner) {
        const Slice part = slice_of(bytes, channel.size(), owner);
        std::memcpy(data.data() + begin + part.begin, channel.staging(owner) + part.begin,
                    part.end - part.begin);
      }
    }
    channel.next_staging();
  }
}

}  // namespace

void all_reduce_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                       ElementType type, const Reduction& reduction) {
  const size_t width = size_of(type);
  std::byte* const own = data.data();
  if (data.size() <= kFlatBytes) {
    std::memcpy(channel.staging(channel.rank()), own, data.size());
    channel.meet(patience);
    combine(reduction, type, staged(channel, 0), {&own, 1}, data.size() / width, channel.size());
    channel.next_staging();
    return;
  }
  channel.meet(patience, {&own, 1}, data.size());
  if (!channel.reachable()) {
    all_reduce_staged(channel, patience, data, type, reduction);
    return;
  }
  const Slice mine = slice_of(data.size(), channel.size(), channel.rank());
  std::vector<std::byte*> targets;
  for (int rank = 0; rank < channel.size(); ++rank)
    targets.push_back(channel.buffer(rank) + mine.begin);
  const std::vector<const std::byte*> sources(targets.begin(), targets.end());
  combine(reduction, type, sources, targets, (mine.end - mine.begin) / width, channel.size());
  channel.sync(patience);
}

void broadcast_shared(shm::Channel& channel, Patience& patience, std::span<std::byte> data,
                      int root) {
  const bool is_root = channel.rank() == root;
  std::byte* const own = data.data();
  channel.meet(patience, {&own, 1}, data.size());
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

bool lane_reduce_shared(shm::Channel& channel, Patience& patience, int lanes,
                        std::span<const std::vector<LaneRange>> nodes,
                        std::span<std::byte* const> partials, std::span<std::byte> output,
                        ElementType type, const Reduction& reduction, size_t divisor) {
  std::vector<std::byte*> shown(partials.begin(), partials.end());
  shown.push_back(output.data());
  channel.meet(patience, shown, output.size());
  if (!channel.reachable()) return false;
  const Slice mine = slice_of(output.size(), channel.size(), channel.rank());
  std::vector<LaneRange> all_nodes;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
  for (int rank = 0; rank < channel.size(); ++rank) {
    for (size_t i = 0; i < nodes[rank].size(); ++i) {
      all_nodes.push_back(nodes[rank][i]);
      sources.push_back(channel.buffer(rank, i) + mine.begin);
    }
    targets.push_back(channel.buffer(rank, nodes[rank].size()) + mine.begin);
  }
  add_tree(lanes, all_nodes, sources, targets, type, (mine.end - mine.begin) / size_of(type),
           reduction, divisor);
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
