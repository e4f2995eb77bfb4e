#include "artel/train/worker_sum.h"

namespace artel {

int64_t all_reduce_bytes(size_t bytes, int workers) {
  return static_cast<int64_t>(bytes * 2 * (workers - 1) / workers);
}

int64_t add_over_workers(comm::Group& group, std::span<std::byte> data, comm::ElementType type,
                         std::string_view label) {
  std::byte* const own = data.data();
  group.lane_reduce(comm::LaneLayout::even(group.size(), group.size()), std::span(&own, 1), data,
                    type, {}, false, {.label = label});
  return all_reduce_bytes(data.size(), group.size());
}

}  // namespace artel
