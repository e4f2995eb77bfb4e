#include "artel/comm/shared_collectives.h"

#include <algorithm>
#include <cstring>

namespace artel::comm {
namespace {

// Copies of this size are added by everybody, which saves a meeting.
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
  const int size = channel.size();
  std::byte* const own = data.data();
  // Small data that is elsewhere is shown as a copy.
  const bool small = data.size() <= shm::kStagingBytes;
  std::byte* shown = own;
  if (small && !channel.shares(own, data.size())) {
    shown = channel.staging(channel.rank());
    if (!data.empty()) std::memcpy(shown, own, data.size());
  }
  channel.meet(patience, {&shown, 1}, data.size());
  if (!channel.reachable()) {
    all_reduce_staged(channel, patience, data, type, reduction);
    return;
  }
  std::vector<std::byte*> buffers(size);
  bool all_copies = small && data.size() <= kFlatBytes;
  for (int rank = 0; rank < size; ++rank) {
    buffers[rank] = channel.buffer(rank);
    all_copies = all_copies && buffers[rank] == channel.staging(rank);
  }
  if (small) channel.next_staging();
  if (all_copies) {
    const std::vector<const std::byte*> sources(buffers.begin(), buffers.end());
    combine(reduction, type, sources, {&own, 1}, data.size() / width, size);
    return;
  }
  const Slice mine = slice_of(data.size(), size, channel.rank());
  for (std::byte*& buffer : buffers) buffer += mine.begin;
  const std::vector<const std::byte*> sources(buffers.begin(), buffers.end());
  combine(reduction, type, sources, buffers, (mine.end - mine.begin) / width, size);
  channel.sync(patience);
  if (shown != own) std::memcpy(own, shown, data.size());
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
