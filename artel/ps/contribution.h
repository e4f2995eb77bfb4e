// A worker's push: the sums over the subtrees of its lanes, for all or some keys of a range.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/comm/group.h"
#include "artel/ps/messages.h"

namespace artel::ps {

struct Contribution {
  comm::LaneRange lanes;
  std::vector<const float*> partials;
  std::vector<float> owned = {};                  // memory of the partials unless in place
  const std::vector<uint64_t>* listed = nullptr;  // keys; null means the whole range
};

// Reads a push. `in_place` values stay in the worker's memory, which the group shares. Throws if
// lengths do not match the keys or an address is outside that memory. Refuses coded values if
// `codec` is null.
Contribution read_contribution(const Message& message, const std::vector<uint64_t>* listed,
                               const comm::Group& group, const comm::Codec* codec);

// Throws an Error of kind numeric for the first value that is NaN or infinite. `name_of` returns
// the name of a key.
void require_finite(const Contribution& contribution, const KeyRange& keys,
                    const std::function<std::string(uint64_t key)>& name_of);

}  // namespace artel::ps
