#include "artel/train/exchange.h"

#include <algorithm>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/train/worker_sum.h"

namespace artel {
namespace {

struct Way {
  const char* name;
  comm::Algorithm algorithm;
};

constexpr Way kWays[] = {{"auto", comm::Algorithm::automatic},
                         {"allreduce", comm::Algorithm::automatic},
                         {"ring", comm::Algorithm::ring},
                         {"tree", comm::Algorithm::tree},
                         {"halving", comm::Algorithm::halving_doubling},
                         {"hierarchical", comm::Algorithm::two_level},
                         {"coordinator", comm::Algorithm::direct}};

// Puts gradients that lie side by side back to their places.
void scatter(const Bucket& part, std::span<const float> gradients, std::byte* region) {
  for (const Bucket::Gradient& gradient : part.gradients) {
    std::memcpy(region + gradient.offset, gradients.data(), gradient.bytes());
    gradients = gradients.subspan(gradient.matrix.size());
  }
}

std::span<std::byte> part_of(std::byte* region, const Bucket& part) {
  return {region + part.offset, part.bytes};
}

}  // namespace

void add_partials(const Bucket& bucket, const std::vector<std::byte*>& partials) {
  std::byte* const sum = partials[0] + bucket.offset;
  for (size_t i = 1; i < partials.size(); ++i) {
    const std::byte* sources[] = {sum, partials[i] + bucket.offset};
    comm::add_lanes({0, 2}, sources, sum, comm::ElementType::f32, bucket.bytes / sizeof(float));
  }
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Way& way : kWays) names.emplace_back(way.name);
  return names;
}

void check_options(const ExchangeOptions& options) {
  require(options.reduction == "exact" || options.reduction == "fast", ErrorKind::invalid_argument,
          "cluster.reduction: got '{}', expected 'exact' or 'fast'", options.reduction);
  require(options.coordinators >= 1, ErrorKind::invalid_argument,
          "cluster.coordinators: got {}, expected at least 1", options.coordinators);
  const std::vector<std::string> names = strategy_names();
  require(std::find(names.begin(), names.end(), options.strategy) != names.end(),
          ErrorKind::invalid_argument, "cluster.strategy: got '{}'{}; known: {}", options.strategy,
          did_you_mean(options.strategy, names), join(names, ", "));
}

Exchange::Exchange(comm::Group* group, const ExchangeOptions& options, Timeline* timeline)
    : group_(group), options_(options), timeline_(timeline) {
  check_options(options);
  for (const Way& way : kWays)
    if (options.strategy == way.name) algorithm_ = way.algorithm;
  if (!options.compress.empty() && options.compress != "none")
    codec_ = comm::make_codec(options.compress);
}

Exchange::~Exchange() {
  for (Pending& pending : pending_) try {
      pending.handle.wait(Deadline::never());
    } catch (const std::exception&) {
      // Whoever ended the group knows the cause.
    }
}

void Exchange::begin_step(int64_t step, const std::vector<Bucket>& buckets,
                          const comm::LaneLayout& layout) {
  step_ = step;
  layout_ = layout;
  pending_.resize(buckets.size());
  make_feedback(buckets);
}

void Exchange::make_feedback(const std::vector<Bucket>& buckets) {
  if (!codec_ || feedback_.size() == buckets.size()) return;
  feedback_.resize(buckets.size());
  for (size_t i = 0; i < buckets.size(); ++i)
    for (const Bucket::Gradient& gradient : buckets[i].gradients)
      feedback_[i].matrices.push_back(gradient.matrix);
}

OwnState Exchange::state() const {
  OwnState state;
  for (size_t i = 0; i < feedback_.size(); ++i)
    keep_residuals(feedback_[i], fmt::format("bucket {}", i), state);
  return state;
}

void Exchange::set_state(const OwnState& state, const std::vector<Bucket>& buckets) {
  make_feedback(buckets);
  for (size_t i = 0; i < feedback_.size(); ++i)
    restore_residuals(state, fmt::format("bucket {}", i), feedback_[i]);
}

void Exchange::start(int bucket, const Bucket& part, const std::vector<std::byte*>& partials) {
  pending_[bucket] = {.total = partials.front()};
  if (!group_) return add_partials(part, partials);
  pending_[bucket].handle = group_->start([this, bucket, part, partials](comm::Group& group) {
    const Timeline::Scope scope(timeline_, "wire", Timeline::kWire,
                                timeline_ ? fmt::format("bucket {}", bucket) : "");
    const Clock::time_point begin = Clock::now();
    const int64_t sent = reduce(group, bucket, part, partials);
    pending_[bucket].sent_bytes = sent;
    pending_[bucket].wire_seconds = seconds_between(begin, Clock::now());
  });
}

int64_t Exchange::reduce(comm::Group& group, int bucket, const Bucket& part,
                         const std::vector<std::byte*>& partials) {
  if (codec_) return reduce_packed(group, bucket, part, partials);
  if (options_.strategy == "coordinator")
    return gather_at_coordinator(group, bucket, part, partials);
  const std::string label = fmt::format("bucket {}", bucket);
  const comm::Call call = {.label = label, .algorithm = algorithm_};
  if (options_.reduction == "exact") return reduce_exactly(group, part, partials, call);
  add_partials(part, partials);
  group.all_reduce(part_of(partials.front(), part), comm::ElementType::f32, {}, call);
  return all_reduce_bytes(part.bytes, group.size());
}

int64_t Exchange::reduce_exactly(comm::Group& group, const Bucket& part,
                                 const std::vector<std::byte*>& partials, const comm::Call& call) {
  std::vector<std::byte*> parts;
  for (std::byte* partial : partials) parts.push_back(partial + part.offset);
  group.lane_reduce(layout_, parts, part_of(partials.front(), part), comm::ElementType::f32, {},
                    false, call);
  return all_reduce_bytes(part.bytes * (partials.size() + 1) / 2, group.size());
}

std::span<float> Exchange::gathered(const Bucket& part, const std::byte* region) {
  side_by_side_.clear();
  for (const Bucket::Gradient& gradient : part.gradients) {
    const auto* const values = reinterpret_cast<const float*>(region + gradient.offset);
    side_by_side_.insert(side_by_side_.end(), values, values + gradient.matrix.size());
  }
  return side_by_side_;
}

// Gradients are packed; statistics and observations beside them in a bucket stay exact. Codecs see
// the gradients side by side: a zero that stands between two of them would come back as something
// else, and would be part of what codecs take the values around it for.
int64_t Exchange::reduce_packed(comm::Group& group, int bucket, const Bucket& part,
                                const std::vector<std::byte*>& partials) {
  add_partials(part, partials);
  std::byte* const region = partials.front();
  const size_t begin = part.first_gradient, end = part.gradients_end;
  std::span<float> gradients = {reinterpret_cast<float*>(region + begin),
                                (end - begin) / sizeof(float)};
  size_t floats = 0;
  for (const Bucket::Gradient& gradient : part.gradients) floats += gradient.matrix.size();
  const bool apart = floats < gradients.size();
  if (apart) gradients = gathered(part, region);
  const auto add_exactly = [&](size_t from, size_t to) {
    return add_over_workers(group, {region + from, to - from}, comm::ElementType::f32,
                            "statistics");
  };
  int64_t sent = 0;
  if (begin > part.offset) sent += add_exactly(part.offset, begin);
  if (end > begin)
    sent += static_cast<int64_t>(codec_->all_reduce(
        group, {.seed = options_.seed, .step = step_, .stream = static_cast<uint64_t>(bucket)},
        feedback_[bucket], gradients, false));
  if (apart) scatter(part, gradients, region);
  if (end < part.offset + part.bytes) sent += add_exactly(end, part.offset + part.bytes);
  return sent;
}

// A coordinator adds the partial sums of all in the canonical order and sends the total back;
// several coordinators take turns with the buckets.
int64_t Exchange::gather_at_coordinator(comm::Group& group, int bucket, const Bucket& part,
                                        const std::vector<std::byte*>& partials) {
  const int root = bucket % std::min(options_.coordinators, group.size());
  const bool here = group.rank() == root;
  std::vector<size_t> sizes;
  std::vector<comm::LaneRange> nodes;
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::vector<comm::LaneRange> own = layout_.subtrees(rank);
    nodes.insert(nodes.end(), own.begin(), own.end());
    sizes.push_back(own.size() * part.bytes);
  }
  std::vector<std::byte> mine, all(here ? nodes.size() * part.bytes : 0);
  for (std::byte* partial : partials)
    mine.insert(mine.end(), partial + part.offset, partial + part.offset + part.bytes);
  group.gather(mine, all, root, sizes, {.label = "to the coordinator"});
  const std::span<std::byte> total = part_of(partials.front(), part);
  if (here) {
    std::vector<const std::byte*> sources;
    for (size_t i = 0; i < nodes.size(); ++i) sources.push_back(all.data() + i * part.bytes);
    std::byte* const target = total.data();
    comm::LaneTree(layout_.lanes, std::move(nodes))
        .add(sources, std::span(&target, 1), comm::ElementType::f32, part.bytes / sizeof(float));
  }
  group.broadcast(total, root, {.label = "from the coordinator"});
  return static_cast<int64_t>(here ? total.size() * (group.size() - 1) : mine.size());
}

std::byte* Exchange::wait(int bucket) {
  Pending& pending = pending_[bucket];
  if (pending.handle.valid()) {
    const Timeline::Scope scope(timeline_, "wait", Timeline::kMain,
                                timeline_ ? fmt::format("bucket {}", bucket) : "");
    const Clock::time_point begin = Clock::now();
    pending.handle.wait(Deadline::never());
    traffic_.waited_seconds += seconds_between(begin, Clock::now());
    traffic_.wire_seconds += std::exchange(pending.wire_seconds, 0);
    traffic_.sent_bytes += std::exchange(pending.sent_bytes, 0);
  }
  return pending.total;
}

}  // namespace artel
