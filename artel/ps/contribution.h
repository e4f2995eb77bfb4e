// What one worker pushes: the sums over the subtrees of its lanes, for all or some keys of a range.
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
  std::vector<float> owned = {};                  // holds the partials, unless they are in place
  const std::vector<uint64_t>* listed = nullptr;  // the keys; null: all of the range
};

// Reads a push. Values that are `in_place` stay in the worker's memory, which the group shares.
// Throws for lengths that do not match the keys, and for places outside that memory. `codec` may be
// null: then coded values are refused.
Contribution read_contribution(const Message& message, const std::vector<uint64_t>* listed,
                               const comm::Group& group, const comm::Codec* codec);

// Throws an Error of kind numeric for the first value that is NaN or infinite; `name_of` gives the
// name of a key.
void require_finite(const Contribution& contribution, const KeyRange& keys,
                    const std::function<std::string(uint64_t key)>& name_of);

}  // namespace artel::ps
