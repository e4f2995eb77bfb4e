#include "artel/train/step/worker_sum.h"

namespace artel {

void add_over_workers(comm::Group& group, std::span<std::byte> data, comm::ElementType type,
                      std::string_view label) {
  std::byte* const own = data.data();
  group.lane_reduce(comm::LaneLayout::even(group.size(), group.size()), std::span(&own, 1), data,
                    type, {}, false, {.label = label});
}

}  // namespace artel
