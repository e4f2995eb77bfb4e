// One worker's view of a shard's values, so that answers can contain only the changes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/transports/transport.h"
#include "artel/ps/key_ranges.h"
#include "artel/ps/shard.h"

namespace artel::ps {

class KnownValues {
 public:
  // Initially all zero. Memory is allocated on first use.
  KnownValues(const KeyRange& keys, Shard::Allocate allocate)
      : keys_(keys), allocate_(std::move(allocate)) {}

  // Records that the worker has these values. Returns the stored copy.
  std::span<const float> set(const KeyRange& keys, std::span<const float> values);

  // Resets a range to zero, because the worker has lost its values.
  void forget(const KeyRange& keys);

  struct Packing {
    bool masked = false;                 // omits unchanged values
    const comm::Codec* codec = nullptr;  // null for floats
    comm::CodecContext context = {};
  };
  // Encodes the changes from the worker's view to `values`, which belong to all keys of the range
  // or to the `listed` ones. The packing error remains a pending change.
  std::vector<std::byte> pack_changes(const KeyRange& keys, const std::vector<uint64_t>* listed,
                                      std::span<const float> values, const Packing& packing);

 private:
  std::span<float> of(const KeyRange& keys);

  KeyRange keys_;
  Shard::Allocate allocate_;
  comm::SharedBytes memory_;
};

}  // namespace artel::ps
