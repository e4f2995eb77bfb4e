#include "artel/train/exchange.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/base/time.h"

namespace artel {
namespace {

struct Strategy {
  const char* name;
  comm::Algorithm algorithm;
};

constexpr Strategy kStrategies[] = {{"auto", comm::Algorithm::automatic},
                                    {"ring", comm::Algorithm::ring},
                                    {"tree", comm::Algorithm::tree},
                                    {"halving", comm::Algorithm::halving_doubling},
                                    {"hierarchical", comm::Algorithm::two_level},
                                    {"coordinator", comm::Algorithm::direct}};

std::span<std::byte> part_of(std::byte* region, const Bucket& part) {
  return {region + part.offset, part.bytes};
}

}  // namespace

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : kStrategies) names.emplace_back(strategy.name);
  return names;
}

Exchange::Exchange(comm::Group* group, const ExchangeOptions& options)
    : group_(group),
      exact_(options.reduction == "exact"),
      coordinator_(options.strategy == "coordinator") {
  require(exact_ || options.reduction == "fast", ErrorKind::invalid_argument,
          "cluster.reduction: got '{}', expected 'exact' or 'fast'", options.reduction);
  const std::vector<std::string> names = strategy_names();
  const auto found = std::find(names.begin(), names.end(), options.strategy);
  require(found != names.end(), ErrorKind::invalid_argument,
          "cluster.strategy: got '{}'{}; known: {}", options.strategy,
          did_you_mean(options.strategy, names), join(names, ", "));
  algorithm_ = kStrategies[found - names.begin()].algorithm;
}

void Exchange::start(int bucket, const Bucket& part, const std::vector<std::byte*>& partials) {
  if (pending_.size() <= static_cast<size_t>(bucket)) pending_.resize(bucket + 1);
  pending_[bucket] = {partials.front(), {}};
  if (!group_) return;
  pending_[bucket].handle = group_->start([this, bucket, part, partials](comm::Group& group) {
    reduce(group, bucket, part, partials);
  });
}

void Exchange::reduce(comm::Group& group, int bucket, const Bucket& part,
                      const std::vector<std::byte*>& partials) {
  const std::string label = fmt::format("bucket {}", bucket);
  const comm::Call call = {.label = label, .algorithm = algorithm_};
  const std::span<std::byte> total = part_of(partials.front(), part);
  traffic_.bytes += static_cast<int64_t>(part.bytes);
  if (exact_ && !coordinator_) {
    std::vector<std::byte*> parts;
    for (std::byte* partial : partials) parts.push_back(partial + part.offset);
    group.lane_reduce(layout_, parts, total, comm::ElementType::f32, {}, false, call);
    return;
  }
  if (coordinator_) {
    gather_at_coordinator(group, bucket, part, partials);
    return;
  }
  for (size_t i = 1; i < partials.size(); ++i) {
    const std::byte* sources[] = {partials[0] + part.offset, partials[i] + part.offset};
    comm::add_lanes({0, 2}, sources, total.data(), comm::ElementType::f32,
                    part.bytes / sizeof(float));
  }
  group.all_reduce(total, comm::ElementType::f32, {}, call);
}

// One worker adds the partial sums of all in the canonical order and sends the total back; buckets
// take turns, so that with several buckets every worker coordinates some of them.
void Exchange::gather_at_coordinator(comm::Group& group, int bucket, const Bucket& part,
                                     const std::vector<std::byte*>& partials) {
  const int root = bucket % group.size();
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
    comm::add_tree(layout_.lanes, nodes, sources, std::span(&target, 1), comm::ElementType::f32,
                   part.bytes / sizeof(float));
  }
  group.broadcast(total, root, {.label = "from the coordinator"});
}

std::byte* Exchange::wait(int bucket) {
  Pending& pending = pending_[bucket];
  if (pending.handle.valid()) {
    const Clock::time_point begin = Clock::now();
    pending.handle.wait(Deadline::never());
    traffic_.waited_seconds += seconds_between(begin, Clock::now());
  }
  return pending.total;
}

}  // namespace artel
