#include "artel/comm/codecs/rank_sum.h"

#include "artel/comm/group.h"

namespace artel::comm {

void add_over_ranks(Group& group, std::span<float> values, bool mean) {
  const std::span<std::byte> data = std::as_writable_bytes(values);
  std::byte* const partial = data.data();
  group.lane_reduce(LaneLayout::even(group.size(), group.size()), {&partial, 1}, data,
                    ElementType::f32, mean ? ReductionKind::mean : ReductionKind::sum);
}

}  // namespace artel::comm
