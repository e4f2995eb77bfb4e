// What one worker knows of a shard's values, so answers can contain only the changes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/transport.h"
#include "artel/ps/key_ranges.h"
#include "artel/ps/shard.h"

namespace artel::ps {

class KnownValues {
 public:
  // Memory is allocated when first needed. Initially all zero.
  KnownValues(const KeyRange& keys, Shard::Allocate allocate)
      : keys_(keys), allocate_(std::move(allocate)) {}

  // The worker now has these values of a range. Returns where they are kept.
  std::span<const float> set(const KeyRange& keys, std::span<const float> values);

  // The worker has forgotten what it knew of a range: changes count from zero again.
  void forget(const KeyRange& keys);

  struct Packing {
    bool masked = false;                 // leave out what has not changed
    const comm::Codec* codec = nullptr;  // null: floats
    comm::CodecContext context = {};
  };
  // The message that tells the worker the changes from what it knows to `values`, which belong to
  // all keys of the range, or to the `listed` ones. What packing loses remains a change.
  std::vector<std::byte> pack_changes(const KeyRange& keys, const std::vector<uint64_t>* listed,
                                      std::span<const float> values, const Packing& packing);

 private:
  std::span<float> of(const KeyRange& keys);

  KeyRange keys_;
  Shard::Allocate allocate_;
  comm::SharedBytes memory_;
};

}  // namespace artel::ps
