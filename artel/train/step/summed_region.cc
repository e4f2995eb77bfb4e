#include "artel/train/step/summed_region.h"

#include <algorithm>
#include <optional>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

size_t output_size(const Program& program, const Metrics::Part& part) {
  const Graph& graph = program.graph();
  return static_cast<size_t>(graph.type(graph.output_id(part.output)).shape.elements());
}

// Smaller tables are not worth the messages that rows need.
constexpr size_t kLeastTable = size_t{64} << 10;

// How many rows a lane looks up in an embedding table, given the slot of its gradient. Nothing for
// other gradients, and for a table with another use, such as that of a tied last layer.
std::optional<int64_t> rows_looked_up(const Program& program, const GradientSlot& slot) {
  if (!slot.only_sum) return std::nullopt;
  const Plan& plan = program.plan();
  for (const PlannedKernel& kernel : plan.kernels) {
    if (kernel.op != "embedding_backward" || kernel.inputs.size() != 2) continue;
    const Buffer& table = plan.buffers[plan.buffers[kernel.outputs.front()].root];
    if (table.region != Region::gradients || table.offset != slot.offset) continue;
    return program.graph().type(plan.buffers[kernel.inputs.back()].value).shape.elements();
  }
  return std::nullopt;
}

// `begin` is the offset of the gradients.
std::vector<SummedRegion::Part> parts_of(const Program& program, size_t begin, int lanes) {
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
    const std::optional<int64_t> rows = rows_looked_up(program, slot);
    part.is_table = rows.has_value();
    part.by_rows = rows && slot.bytes >= kLeastTable && *rows * lanes <= 2 * part.shape[0];
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
    current.gradients.push_back({part.offset, matrix_of(part.shape), part.is_table, part.by_rows});
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

SummedRegion::SummedRegion(const Program& program, const std::vector<Metric>& metrics, int lanes,
                           size_t bucket_bytes)
    : metrics_(metrics, program.graph()), weighted_(program.graph().has_output("loss_weight")) {
  for (const Metrics::Part& part : metrics_.parts()) {
    const size_t made = output_size(program, part);
    const size_t size = part.width > 0 ? made * static_cast<size_t>(lanes) : part.size;
    metric_places_.push_back({kFirstMetric + metric_floats_, size, made});
    metric_floats_ += size;
  }
  statistics_bytes_ = padded(statistics() * sizeof(float));
  parts_ = parts_of(program, statistics_bytes_, lanes);
  cut(bucket_bytes);
  bytes_ = program.plan().gradient_bytes + statistics_bytes_;
}

void SummedRegion::cut(size_t bucket_bytes) {
  buckets_ = cut_into_buckets(parts_, statistics_bytes_, bucket_bytes);
}

void SummedRegion::write_metrics(const Frame& frame, int lane, std::span<float> region) const {
  for (size_t i = 0; i < metric_places_.size(); ++i) {
    const MetricPlace& place = metric_places_[i];
    const Metrics::Part& part = metrics_.parts()[i];
    if (!frame.program().computes(part.output)) continue;
    const Tensor output = frame.output(part.output);
    const std::span<float> own = region.subspan(place.offset, place.size);
    const size_t first = part.width > 0 ? place.slot * static_cast<size_t>(lane) : 0;
    std::ranges::fill(own, 0.0f);
    std::ranges::copy(output.values<float>(), own.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

std::vector<double> SummedRegion::read_metrics(std::span<const float> region) const {
  std::vector<double> sums;
  for (size_t i = 0; i < metric_places_.size(); ++i) {
    const std::span<const float> own =
        region.subspan(metric_places_[i].offset, metric_places_[i].size);
    if (metrics_.parts()[i].width == 0) {
      sums.insert(sums.end(), own.begin(), own.end());
      continue;
    }
    const std::vector<double> made = metrics_.parts()[i].metric.sums_of_rows(own);
    sums.insert(sums.end(), made.begin(), made.end());
  }
  return sums;
}

void SummedRegion::check(const Program& program) const {
  for (size_t i = 0; i < metric_places_.size(); ++i) {
    const Metrics::Part& part = metrics_.parts()[i];
    const size_t size = output_size(program, part), slot = metric_places_[i].slot;
    require(
        part.width > 0 || size == slot, ErrorKind::invalid_argument,
        "[metric '{}'] got {} and {} sums for batches of different sizes, expected equal numbers; "
        "add up over the rows",
        part.metric.name, slot, size);
    require(size <= slot, ErrorKind::invalid_argument,
            "[metric '{}'] got a batch with more rows than the first one; begin with the largest",
            part.metric.name);
  }
  const std::vector<Part> others = parts_of(program, statistics_bytes_, 1);
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
