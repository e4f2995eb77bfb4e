#include "artel/train/step/exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "artel/base/error.h"
#include "artel/base/pages.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/train/step/worker_sum.h"

namespace artel {
namespace {

struct Way {
  const char* name;
  comm::Algorithm algorithm;
  bool own_order = false;  // adds in its own order unless asked otherwise
  bool exact = true;       // it can add in the canonical order
};

constexpr Way kWays[] = {{"auto", comm::Algorithm::automatic},
                         {"allreduce", comm::Algorithm::automatic},
                         {"ring", comm::Algorithm::ring, true, false},
                         {"tree", comm::Algorithm::tree, true, false},
                         {"halving", comm::Algorithm::halving, true, false},
                         {"hierarchical", comm::Algorithm::hierarchical, true, true},
                         {"coordinator", comm::Algorithm::direct}};

const Way* find_way(const std::string& strategy) {
  const auto* const found =
      std::ranges::find_if(kWays, [&](const Way& way) { return strategy == way.name; });
  return found == std::end(kWays) ? nullptr : found;
}

// True with several hosts and several workers on one of them.
bool has_shared_hosts(const Membership& membership) {
  if (!membership.group) return false;
  const std::vector<int> hosts = membership.group->host_numbers();
  const size_t different = std::set<int>(hosts.begin(), hosts.end()).size();
  return different > 1 && different < hosts.size();
}

// Copies contiguous gradients back to their places.
void scatter(const Bucket& part, std::span<const float> gradients, const Memory& region) {
  for (const Bucket::Gradient& gradient : part.gradients) {
    std::copy_n(gradients.data(), gradient.matrix.size(),
                region.part(gradient.offset, gradient.bytes()).floats().data());
    gradients = gradients.subspan(gradient.matrix.size());
  }
}

std::span<std::byte> part_of(const Memory& region, const Bucket& part) {
  return region.part(part.offset, part.bytes).host();
}

}  // namespace

void add_partials(const Bucket& bucket, const std::vector<Memory>& partials) {
  std::byte* const sum = part_of(partials[0], bucket).data();
  for (size_t i = 1; i < partials.size(); ++i) {
    const std::byte* sources[] = {sum, part_of(partials[i], bucket).data()};
    comm::add_lanes({0, 2}, sources, sum, comm::ElementType::f32, bucket.bytes / sizeof(float));
  }
}

Memory allocate_sums(const Membership& membership, size_t bytes) {
  if (!membership.group) return cpu().allocate(bytes);
  return {cpu(), membership.group->allocate(bytes), bytes};
}

std::vector<std::string> exchange_names() {
  std::vector<std::string> names;
  for (const Way& way : kWays) names.emplace_back(way.name);
  return names;
}

bool has_own_order(const std::string& strategy) {
  const Way* const way = find_way(strategy);
  return way && way->own_order;
}

bool names_algorithm(const std::string& strategy) {
  const Way* const way = find_way(strategy);
  return way && way->algorithm != comm::Algorithm::automatic;
}

bool can_be_exact(const std::string& strategy) {
  const Way* const way = find_way(strategy);
  return !way || way->exact;
}

void check_options(const ExchangeOptions& options) {
  require(options.reduction == "exact" || options.reduction == "fast", ErrorKind::invalid_argument,
          "cluster.reduction: got '{}', expected 'exact' or 'fast'", options.reduction);
  require(options.coordinators >= 1, ErrorKind::invalid_argument,
          "cluster.coordinators: got {}, expected at least 1", options.coordinators);
  const std::vector<std::string> names = exchange_names();
  require(find_way(options.strategy) != nullptr, ErrorKind::invalid_argument,
          "cluster.strategy: got '{}'{}; known: {}", options.strategy,
          did_you_mean(options.strategy, names), join(names, ", "));
}

Exchange::Exchange(const Membership& membership, const ExchangeOptions& options, Timeline* timeline)
    : membership_(membership), options_(options), timeline_(timeline) {
  check_options(options);
  algorithm_ = find_way(options.strategy)->algorithm;
  if (!options.compress.empty() && options.compress != "none")
    codec_ = comm::make_codec(options.compress);
  if (options.shards && options.frees_sums) staying_ = options.shards->staying(membership.rank());
}

ExchangePath Exchange::path() const {
  if (!membership_.group) return {};
  if (codec_)
    return {.algorithm = codec_->name(),
            .reduction = "lossy",
            .decided_by = fmt::format("cluster.compress = \"{}\"", options_.compress)};
  if (options_.shards)
    return {.algorithm = "reduce-scatter", .reduction = "exact", .decided_by = "cluster.sharding"};
  if (options_.strategy == "coordinator")
    return {.algorithm = options_.strategy,
            .reduction = "exact",
            .decided_by = "cluster.strategy = \"coordinator\""};
  if (algorithm_ != comm::Algorithm::automatic)
    return {.algorithm = options_.strategy, .reduction = options_.reduction};
  if (options_.reduction == "fast") return {.algorithm = "automatic", .reduction = "fast"};
  // In the canonical order, each worker adds a slice of the sum; hosts add theirs first.
  return {.algorithm =
              std::string(to_string(has_shared_hosts(membership_) ? comm::Algorithm::hierarchical
                                                                  : comm::Algorithm::direct)),
          .reduction = "exact"};
}

Exchange::~Exchange() {
  for (Pending& pending : pending_) try {
      pending.handle.wait(Deadline::never());
    } catch (const std::exception&) {
      // the failed group has recorded the cause
    }
}

bool Exchange::chooses_by_links() const {
  return membership_.group && membership_.group->transport() != "shm" && !codec_ &&
         !options_.shards && options_.reduction == "fast" &&
         algorithm_ == comm::Algorithm::automatic;
}

void Exchange::begin_step(int64_t step, const std::vector<Bucket>& buckets,
                          const comm::LaneLayout& layout) {
  step_ = step;
  layout_ = layout;
  pending_.resize(buckets.size());
  make_feedback(buckets);
}

// The same name on all workers that add the bucket, and on no others.
std::string Exchange::name_of(int bucket) const {
  return fmt::format("bucket {}{}{}", bucket, options_.of.empty() ? "" : " of ", options_.of);
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

void Exchange::start(int bucket, const Bucket& part, const std::vector<Memory>& partials) {
  pending_[bucket] = {.total = partials.front()};
  if (!membership_.group) return add_partials(part, partials);
  pending_[bucket].handle =
      membership_.group->start([this, bucket, part, partials](comm::Group& group) {
        const Timeline::Scope scope(timeline_, "wire", Timeline::kWire,
                                    [&] { return name_of(bucket); });
        const Clock::time_point begin = Clock::now();
        reduce(group, bucket, part, partials);
        pending_[bucket].wire_seconds = seconds_between(begin, Clock::now());
      });
}

void Exchange::reduce(comm::Group& group, int bucket, const Bucket& part,
                      const std::vector<Memory>& partials) {
  const bool in_own_order = options_.reduction != "exact" && !options_.shards;
  if (!has_lanes() && (codec_ || in_own_order))
    std::ranges::fill(part_of(partials.front(), part), std::byte{0});
  if (codec_) return reduce_packed(group, bucket, part, partials);
  const std::string label = fmt::format("bucket {}", bucket);
  const comm::Call call = {.label = label, .algorithm = algorithm_};
  if (options_.shards) return reduce_shards(group, bucket, part, partials, call);
  if (!in_own_order || options_.strategy == "coordinator")
    return reduce_with_rows(group, bucket, part, partials, call);
  add_partials(part, partials);
  group.all_reduce(part_of(partials.front(), part), comm::ElementType::f32, {}, call);
}

std::vector<std::byte*> Exchange::own_sums(const std::vector<Memory>& partials,
                                           size_t offset) const {
  std::vector<std::byte*> sums;
  if (!has_lanes()) return sums;
  for (const Memory& partial : partials) sums.push_back(partial.host().data() + offset);
  return sums;
}

void Exchange::reduce_exactly(comm::Group& group, int bucket, const Bucket& part,
                              const std::vector<Memory>& partials, const comm::Call& call) {
  if (!options_.shards && options_.strategy == "coordinator")
    return gather_at_coordinator(group, bucket, part, partials);
  group.lane_reduce(layout_, own_sums(partials, part.offset), part_of(partials.front(), part),
                    comm::ElementType::f32, {}, false, call);
}

void Exchange::reduce_with_rows(comm::Group& group, int bucket, const Bucket& part,
                                const std::vector<Memory>& partials, const comm::Call& call) {
  size_t begin = part.offset;  // start of the elements that have not been added yet
  const auto reduce_until = [&](size_t end) {
    if (begin < end)
      reduce_exactly(group, bucket, {.offset = begin, .bytes = end - begin}, partials, call);
  };
  for (const Bucket::Gradient& gradient : part.gradients) {
    if (!gradient.by_rows) continue;
    const std::optional<TouchedRows> rows = rows_of_all(group, gradient, partials, call);
    if (!rows) continue;
    reduce_until(gradient.offset);
    reduce_rows(group, bucket, gradient, *rows, partials, call);
    begin = gradient.offset + gradient.bytes();
  }
  reduce_until(part.offset + part.bytes);
}

std::optional<TouchedRows> Exchange::rows_of_all(comm::Group& group, const Bucket::Gradient& table,
                                                 const std::vector<Memory>& partials,
                                                 const comm::Call& call) const {
  ThreadPool here(1);
  TouchedRows own;
  for (size_t i = 0; has_lanes() && i < partials.size(); ++i)
    merge_rows(own, touched_rows(partials[i].part(table.offset, table.bytes()).floats(),
                                 table.matrix.columns, here));
  return agree_on_rows(group, own, table.matrix.rows / 2, call.label);
}

// All other rows are zero in all partial sums, and so in the total.
void Exchange::reduce_rows(comm::Group& group, int bucket, const Bucket::Gradient& table,
                           const TouchedRows& rows, const std::vector<Memory>& partials,
                           const comm::Call& call) {
  const auto table_in = [&](const Memory& region) {
    return region.part(table.offset, table.bytes()).floats();
  };
  const size_t columns = table.matrix.columns, bytes = rows.size() * columns * sizeof(float);
  packed_rows_.resize(std::max(packed_rows_.size(), partials.size()));
  std::vector<Memory> packed;
  for (size_t i = 0; i < partials.size(); ++i) {
    if (packed_rows_[i].bytes() < bytes)
      packed_rows_[i] = allocate_sums(membership_, std::bit_ceil(bytes));
    packed.push_back(packed_rows_[i]);
    if (has_lanes()) pack_rows(table_in(partials[i]), rows, columns, packed_rows_[i].floats());
  }
  if (!has_lanes()) std::ranges::fill(table_in(partials.front()), 0.0f);
  if (rows.empty()) return;
  reduce_exactly(group, bucket, {.offset = 0, .bytes = bytes}, packed, call);
  unpack_rows(packed.front().floats(), rows, columns, table_in(partials.front()));
}

// Sends the statistics to all workers. Each gets the sum of its own part of the gradients.
void Exchange::reduce_shards(comm::Group& group, int bucket, const Bucket& part,
                             const std::vector<Memory>& partials, const comm::Call& call) {
  const std::span<const size_t> cuts = options_.shards->cuts(bucket);
  const size_t begin = cuts.front(), end = cuts.back();
  if (begin > part.offset)
    reduce_exactly(group, bucket, {.offset = part.offset, .bytes = begin - part.offset}, partials,
                   call);
  std::vector<size_t> sizes;
  for (size_t i = 1; i < cuts.size(); ++i) sizes.push_back(cuts[i] - cuts[i - 1]);
  group.lane_reduce_scatter(layout_, own_sums(partials, begin),
                            partials.front().part(begin, end - begin).host(),
                            comm::ElementType::f32, sizes, call);
  const size_t own = cuts[group.rank()], own_end = cuts[group.rank() + 1];
  for (size_t i = 0; options_.frees_sums && i < partials.size(); ++i) {
    const auto give_back = [&](size_t from, size_t to) {
      forget(partials[i].part(from, to - from).host());
    };
    if (i == 0 && staying_[bucket]) continue;
    give_back(begin, i == 0 ? own : end);
    if (i == 0) give_back(own_end, end);
  }
}

std::span<float> Exchange::gathered(const Bucket& part, const Memory& region) {
  side_by_side_.clear();
  for (const Bucket::Gradient& gradient : part.gradients) {
    const std::span<const float> values = region.part(gradient.offset, gradient.bytes()).floats();
    side_by_side_.insert(side_by_side_.end(), values.begin(), values.end());
  }
  return side_by_side_;
}

// Compresses gradients only; statistics and observations in the bucket stay exact. The codec sees
// gradients without padding, because it would change the zeros between them, and they would affect
// the values around them.
void Exchange::reduce_packed(comm::Group& group, int bucket, const Bucket& part,
                             const std::vector<Memory>& partials) {
  add_partials(part, partials);
  const Memory& region = partials.front();
  const size_t begin = part.first_gradient, end = part.gradients_end;
  std::span<float> gradients = region.part(begin, end - begin).floats();
  size_t floats = 0;
  for (const Bucket::Gradient& gradient : part.gradients) floats += gradient.matrix.size();
  const bool apart = floats < gradients.size();
  if (apart) gradients = gathered(part, region);
  const auto add_exactly = [&](size_t from, size_t to) {
    add_over_workers(group, region.part(from, to - from).host(), comm::ElementType::f32,
                     "statistics");
  };
  if (begin > part.offset) add_exactly(part.offset, begin);
  if (end > begin)
    codec_->all_reduce(
        group, {.seed = options_.seed, .step = step_, .stream = static_cast<uint64_t>(bucket)},
        feedback_[bucket], gradients, false);
  if (apart) scatter(part, gradients, region);
  if (end < part.offset + part.bytes) add_exactly(end, part.offset + part.bytes);
}

// A coordinator adds all partial sums in the canonical order and returns the total. Several
// coordinators take turns with the buckets.
void Exchange::gather_at_coordinator(comm::Group& group, int bucket, const Bucket& part,
                                     const std::vector<Memory>& partials) {
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
  for (const std::byte* const sum : own_sums(partials, part.offset))
    mine.insert(mine.end(), sum, sum + part.bytes);
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
}

Memory Exchange::wait(int bucket) {
  Pending& pending = pending_[bucket];
  if (pending.handle.valid()) {
    const Timeline::Scope scope(timeline_, "wait", Timeline::kMain,
                                [&] { return name_of(bucket); });
    const Clock::time_point begin = Clock::now();
    pending.handle.wait(Deadline::never());
    traffic_.waited_seconds += seconds_between(begin, Clock::now());
    traffic_.wire_seconds += std::exchange(pending.wire_seconds, 0);
  }
  return pending.total;
}

}  // namespace artel
