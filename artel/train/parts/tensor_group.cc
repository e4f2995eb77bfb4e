#include "artel/train/parts/tensor_group.h"

#include <cstring>

#include "artel/base/error.h"
#include "artel/base/time.h"

namespace artel {

TensorGroup::TensorGroup(comm::Group group, int shards, std::string name)
    : group_(std::move(group)),
      layout_(comm::LaneLayout::even(shards, group_.size())),
      name_(std::move(name)) {}

std::span<std::byte> TensorGroup::shared(size_t number, size_t bytes) {
  if (shared_.size() <= number) shared_.resize(number + 1);
  Shared& found = shared_[number];
  if (found.bytes < bytes) {
    found = {};  // free it before allocating more
    found = {group_.allocate(bytes), bytes};
  }
  return {found.memory.get(), bytes};
}

void TensorGroup::together(const std::function<void()>& operation) {
  const Clock::time_point begin = Clock::now();
  try {
    operation();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("[{}] {}", name_, error.what()));
  }
  waited_seconds_ += seconds_between(begin, Clock::now());
}

void TensorGroup::sum(std::span<const float* const> partials, std::span<float> total) {
  const std::span<std::byte> result = std::as_writable_bytes(total);
  std::vector<std::byte*> sums;
  for (size_t i = 0; i < partials.size(); ++i) {
    sums.push_back(shared(i, result.size()).data());
    std::memcpy(sums.back(), partials[i], result.size());
  }
  together([&] {
    group_.lane_reduce(layout_, sums, {sums.front(), result.size()}, comm::ElementType::f32, {},
                       false, {.label = "sum over shards"});
  });
  std::memcpy(result.data(), sums.front(), result.size());
}

void TensorGroup::gather(std::span<std::byte> all, std::span<const size_t> bytes) {
  const auto rank = static_cast<size_t>(group_.rank());
  size_t begin = 0;
  for (size_t i = 0; i < rank; ++i) begin += bytes[i];
  const std::span<std::byte> own = shared(0, bytes[rank]);
  std::memcpy(own.data(), all.data() + begin, own.size());
  together([&] { group_.all_gather(own, all, bytes, {.label = "shards"}); });
}

}  // namespace artel
