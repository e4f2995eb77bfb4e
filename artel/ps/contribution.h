// What one worker pushes: the sums over the subtrees of its lanes, of all keys of a range or of
// some.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/group.h"
#include "artel/comm/lane_tree.h"
#include "artel/ps/messages.h"

namespace artel::ps {

struct Contribution {
  comm::LaneRange lanes;
  std::vector<const float*> partials;
  std::vector<float> owned = {};                  // where the partials are, if not elsewhere
  const std::vector<uint64_t>* listed = nullptr;  // the keys; null: all of the range
};

// Reads a push. Values that are `in_place` stay where the worker has them, in memory that the group
// shares. Throws for lengths that do not fit the keys, and for places outside of that memory.
// `codec` may be null: then coded values are refused.
Contribution read_contribution(const Message& message, const std::vector<uint64_t>* listed,
                               const comm::Group& group, const comm::Codec* codec);

// Throws an Error of kind numeric for the first value that is NaN or infinite; `name_of` says what
// a key is.
void require_finite(const Contribution& contribution, const KeyRange& keys,
                    const std::function<std::string(uint64_t key)>& name_of);

}  // namespace artel::ps
