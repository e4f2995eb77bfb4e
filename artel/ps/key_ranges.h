// The assignment of parameters to servers.
//
// The parameters of a model are floats with keys 0 .. keys-1 in a fixed order. Each server has one
// contiguous range, all of about the same size, so the load is even and a request for a range goes
// to as few servers as possible. A shard map is an immutable value.
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
  // Range s belongs to server s. The ranges must cover [0, keys) in order.
  explicit ShardMap(std::vector<KeyRange> ranges);

  // Ranges of equal size, cut at cache lines.
  static ShardMap even(uint64_t keys, int servers);
  // Cuts only at the given keys (ascending), for update rules that need whole tensors.
  static ShardMap between(uint64_t keys, int servers, std::span<const uint64_t> allowed);

  int servers() const { return static_cast<int>(ranges_.size()); }
  uint64_t keys() const { return ranges_.back().last; }
  const KeyRange& range(int server) const { return ranges_[static_cast<size_t>(server)]; }
  // Throws for an unknown key.
  int server_of(uint64_t key) const;

 private:
  std::vector<KeyRange> ranges_;
};

}  // namespace artel::ps
