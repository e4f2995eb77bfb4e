// The exact sum over ranks, each counting as one lane: the same bits on every transport.
#pragma once

#include <span>

namespace artel::comm {

class Group;

void add_over_ranks(Group& group, std::span<float> values, bool mean);

}  // namespace artel::comm
