// Which server has which parameters.
//
// The parameters of a model are floats with keys 0 .. keys-1, in one fixed order. Each server has
// one contiguous range of them, all of about the same size, so load is even and a request for a
// range goes to as few servers as possible. A shard map is a value: for another placement
// (replicas, measured load), make another map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace artel::ps {

struct KeyRange {
  uint64_t first = 0;
  uint64_t last = 0;  // exclusive

  uint64_t size() const { return last - first; }
  bool empty() const { return first >= last; }
  bool contains(const KeyRange& other) const {
    return other.first >= first && other.last <= last && other.first <= other.last;
  }
  bool operator==(const KeyRange&) const = default;
};

KeyRange intersection(const KeyRange& a, const KeyRange& b);

class ShardMap {
 public:
  // Range s belongs to server s; together they are [0, keys) in order.
  explicit ShardMap(std::vector<KeyRange> ranges);

  // Cuts are multiples of a cache line of floats.
  static ShardMap even(uint64_t keys, int servers);
  // Cuts only at the given keys (ascending): for update rules that need a whole tensor.
  static ShardMap between(uint64_t keys, int servers, std::span<const uint64_t> allowed);

  int servers() const { return static_cast<int>(ranges_.size()); }
  uint64_t keys() const { return ranges_.back().last; }
  const KeyRange& range(int server) const { return ranges_[static_cast<size_t>(server)]; }
  // Throws for a key that no server has.
  int server_of(uint64_t key) const;

 private:
  std::vector<KeyRange> ranges_;
};

}  // namespace artel::ps
