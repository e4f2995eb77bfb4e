#include "artel/train/summed_region.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

std::vector<SummedRegion::Part> parts_of(const Program& program) {
  const Graph& graph = program.graph();
  std::vector<SummedRegion::Part> parts;
  for (const GradientSlot& slot : program.plan().gradients) {
    const ValueData& value = graph.value(slot.value);
    SummedRegion::Part part = {.name = value.name,
                               .shape = value.type.shape,
                               .offset = SummedRegion::kStatisticsBytes + slot.offset,
                               .bytes = slot.bytes,
                               .is_state = slot.is_state};
    for (const StateUpdate& update : graph.state_updates())
      if (slot.is_state && update.state == slot.value)
        part.momentum = static_cast<float>(update.momentum);
    parts.push_back(std::move(part));
  }
  return parts;
}

// Buckets of at least `bytes`; the first begins with the statistics.
std::vector<Bucket> cut_into_buckets(const std::vector<SummedRegion::Part>& parts, size_t bytes) {
  constexpr size_t kStatistics = SummedRegion::kStatisticsBytes;
  std::vector<Bucket> buckets;
  Bucket current = {0, kStatistics, kStatistics, kStatistics};
  for (const SummedRegion::Part& part : parts) {
    if (current.bytes >= bytes) {
      buckets.push_back(current);
      const size_t end = current.offset + current.bytes;
      current = {end, 0, end, end};
    }
    current.bytes = part.offset + padded(part.bytes) - current.offset;
    if (part.is_state) continue;
    current.gradients.push_back({part.offset, matrix_of(part.shape)});
    current.gradients_end = current.offset + current.bytes;
  }
  buckets.push_back(current);
  return buckets;
}

}  // namespace

comm::MatrixShape matrix_of(const Shape& shape) {
  const auto elements = static_cast<size_t>(shape.elements());
  const size_t rows = shape.rank() > 1 ? static_cast<size_t>(shape[0]) : 1;
  return {rows, elements / rows};
}

SummedRegion::SummedRegion(const Program& program, size_t bucket_bytes)
    : parts_(parts_of(program)),
      buckets_(cut_into_buckets(parts_, bucket_bytes)),
      bytes_(program.plan().gradient_bytes + kStatisticsBytes) {}

void SummedRegion::check(const Program& program) const {
  const std::vector<Part> others = parts_of(program);
  require(others.size() == parts_.size(), ErrorKind::internal,
          "[step] lanes of different sizes sum {} and {} tensors", parts_.size(), others.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part &own = parts_[i], &other = others[i];
    require(own.name == other.name && own.offset == other.offset && own.bytes == other.bytes,
            ErrorKind::internal,
            "[step] lanes of different sizes sum '{}' ({} bytes at {}) and '{}' ({} bytes at {})",
            own.name, own.bytes, own.offset, other.name, other.bytes, other.offset);
  }
}

std::vector<int> SummedRegion::ready_steps(const Program& program) const {
  const Plan& plan = program.plan();
  std::vector<int> ready(buckets_.size(), 0);
  ready[0] = plan.buffers[plan.buffer_of[program.graph().output_id("loss")]].first;
  for (const GradientSlot& slot : plan.gradients)
    for (size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i].contains(kStatisticsBytes + slot.offset))
        ready[i] = std::max(ready[i], slot.ready);
  return ready;
}

}  // namespace artel
