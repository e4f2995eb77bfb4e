#include "artel/train/summed_region.h"

#include <algorithm>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

// `begin` is where gradients do.
std::vector<SummedRegion::Part> parts_of(const Program& program, size_t begin) {
  const Graph& graph = program.graph();
  std::vector<SummedRegion::Part> parts;
  for (const GradientSlot& slot : program.plan().gradients) {
    const ValueData& value = graph.value(slot.value);
    SummedRegion::Part part = {.name = value.name,
                               .whole = value.whole_name(),
                               .first = shard_offset(value),
                               .shard = value.shard_of ? value.shard_of->shard : -1,
                               .shape = value.type.shape,
                               .offset = begin + slot.offset,
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
std::vector<Bucket> cut_into_buckets(const std::vector<SummedRegion::Part>& parts,
                                     size_t statistics, size_t bytes) {
  std::vector<Bucket> buckets;
  Bucket current = {0, statistics, statistics, statistics};
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

SummedRegion::SummedRegion(const Program& program, const std::vector<Metric>& metrics,
                           size_t bucket_bytes)
    : metrics_(metrics, program.graph()),
      weighted_(program.graph().has_output("loss_weight")),
      statistics_bytes_(padded((kFirstMetric + metrics_.sums()) * sizeof(float))),
      parts_(parts_of(program, statistics_bytes_)),
      buckets_(cut_into_buckets(parts_, statistics_bytes_, bucket_bytes)),
      bytes_(program.plan().gradient_bytes + statistics_bytes_) {}

void SummedRegion::check(const Program& program) const {
  for (const Metrics::Part& part : metrics_.parts()) {
    const Graph& graph = program.graph();
    const int64_t size = graph.type(graph.output_id(part.output)).shape.elements();
    require(size == static_cast<int64_t>(part.size), ErrorKind::invalid_argument,
            "[metric '{}'] got {} and {} sums for batches of different sizes, expected as many for "
            "all; add up over the rows",
            part.metric.name, part.size, size);
  }
  const std::vector<Part> others = parts_of(program, statistics_bytes_);
  require(others.size() == parts_.size(), ErrorKind::internal,
          "[step] lanes of different sizes sum {} and {} tensors", parts_.size(), others.size());
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part &own = parts_[i], &other = others[i];
    const bool same = own.name == other.name && own.offset == other.offset &&
                      own.bytes == other.bytes && own.shape == other.shape &&
                      own.is_state == other.is_state && own.momentum == other.momentum;
    require(same, ErrorKind::internal,
            "[step] lanes of different sizes sum '{}' ({} bytes at {}) and '{}' ({} bytes at {})",
            own.name, own.bytes, own.offset, other.name, other.bytes, other.offset);
  }
}

std::vector<int> SummedRegion::ready_kernels(const Program& program) const {
  const Plan& plan = program.plan();
  std::vector<int> ready(buckets_.size(), 0);
  const auto computed = [&](std::string_view output) {
    ready[0] =
        std::max(ready[0], plan.buffers[plan.buffer_of[program.graph().output_id(output)]].first);
  };
  computed("loss");
  if (weighted_) computed("loss_weight");
  for (const Metrics::Part& part : metrics_.parts()) computed(part.output);
  for (const GradientSlot& slot : plan.gradients)
    for (size_t i = 0; i < buckets_.size(); ++i)
      if (buckets_[i].contains(statistics_bytes_ + slot.offset))
        ready[i] = std::max(ready[i], slot.ready);
  return ready;
}

}  // namespace artel
