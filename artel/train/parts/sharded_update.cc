#include "artel/train/parts/sharded_update.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/pages.h"
#include "artel/optim/norms.h"

namespace artel {
namespace {

// Floats sent at a time.
constexpr size_t kPieceFloats = size_t{1} << 20;

// Consecutive slices, as far as they have been copied.
class SliceCursor {
 public:
  SliceCursor(std::span<const Slice> slices,
              const std::function<std::span<float>(const Slice&)>& values)
      : slices_(slices), values_(values) {}

  // Calls use(values, offset) for the next `count` floats in place.
  template <typename Use>
  void next(size_t count, const Use& use) {
    for (size_t done = 0; done < count;) {
      const std::span<float> values = values_(slices_[slice_]);
      const size_t some = std::min(count - done, values.size() - at_);
      use(values.subspan(at_, some), done);
      done += some;
      at_ += some;
      if (at_ < values.size()) continue;
      ++slice_;
      at_ = 0;
    }
  }

 private:
  std::span<const Slice> slices_;
  const std::function<std::span<float>(const Slice&)>& values_;
  size_t slice_ = 0, at_ = 0;
};

size_t chunks_of(size_t elements) { return (elements + optim::kNormChunk - 1) / optim::kNormChunk; }

}  // namespace

ShardedUpdate::ShardedUpdate(const Membership& membership, Stepper& stepper)
    : membership_(membership),
      stepper_(stepper),
      update_(stepper.update()),
      rank_(membership.rank()),
      shards_(stepper.region(), membership.size()),
      staging_(membership.group->allocate(kPieceFloats * sizeof(float) *
                                          static_cast<size_t>(membership.size()))) {
  require(update_.scope() != optim::Optimizer::Scope::parameter, ErrorKind::unsupported,
          "cluster.sharding: the optimizer needs whole parameters, so they cannot be divided into "
          "parts; try cluster.sharding = \"none\"");
  size_t chunks = 0;
  for (const SummedRegion::Part& part : stepper.region().parts()) {
    first_chunk_.push_back(chunks);
    chunks += chunks_of(part.bytes / sizeof(float));
  }
  first_chunk_.push_back(chunks);
}

std::span<float> ShardedUpdate::weights(const Slice& slice) const {
  return update_.targets()[slice.part].values.subspan(slice.first, slice.count);
}

void ShardedUpdate::share(std::span<double> terms) {
  membership_.group->all_reduce(std::as_writable_bytes(terms), comm::ElementType::f64, {},
                                {.label = "norms"});
}

std::vector<double> ShardedUpdate::squares(const Memory& total) {
  std::vector<double> terms(first_chunk_.back());
  for (int bucket = 0; bucket < shards_.buckets(); ++bucket)
    for (const Slice& slice : shards_.of(rank_, bucket)) {
      const std::vector<double> own = update_.squares(slice, total);
      std::copy(own.begin(), own.end(),
                terms.data() + first_chunk_[slice.part] + slice.first / optim::kNormChunk);
    }
  share(terms);
  std::vector<double> sums;
  for (size_t part = 0; part + 1 < first_chunk_.size(); ++part)
    sums.push_back(std::accumulate(terms.data() + first_chunk_[part],
                                   terms.data() + first_chunk_[part + 1], 0.0));
  return sums;
}

void ShardedUpdate::apply(const Memory& total, const Update::Options& options,
                          const std::function<void(int bucket)>& done) {
  const bool norms = update_.scope() == optim::Optimizer::Scope::norms;
  std::vector<double> terms(norms ? 2 * first_chunk_.back() : 0);
  for (int bucket = 0; bucket < shards_.buckets(); ++bucket)
    for (const Slice& slice : shards_.of(rank_, bucket)) {
      double* to =
          norms ? terms.data() + 2 * (first_chunk_[slice.part] + slice.first / optim::kNormChunk)
                : nullptr;
      for (const optim::Norms& term : update_.begin(slice, total, options)) {
        *to++ = term.parameter;
        *to++ = term.direction;
      }
    }
  std::vector<optim::Norms> sums(norms ? first_chunk_.size() - 1 : 0);
  if (norms) {
    share(terms);
    for (size_t part = 0; part < sums.size(); ++part)
      for (size_t i = first_chunk_[part]; i < first_chunk_[part + 1]; ++i)
        sums[part] += {terms[2 * i], terms[2 * i + 1]};
    update_.make_whole(sums);
  }
  for (int bucket = 0; bucket < shards_.buckets(); ++bucket) {
    for (const Slice& slice : shards_.of(rank_, bucket))
      update_.finish(slice, total, options, norms ? sums[slice.part] : optim::Norms());
    if (done) done(bucket);
  }
}

KeptRanges ShardedUpdate::kept() const {
  KeptRanges ranges;
  for (const Update::Target& target : update_.targets()) ranges[target.whole];
  for (int bucket = 0; bucket < shards_.buckets(); ++bucket)
    for (const Slice& slice : shards_.of(rank_, bucket)) {
      const Update::Target& target = update_.targets()[slice.part];
      ranges[target.whole].push_back({target.first + slice.first, slice.count});
    }
  return in_order(std::move(ranges));
}

// Gathers piece by piece to save memory.
void ShardedUpdate::gather_weights(comm::Group& group, int bucket, bool keep) {
  const std::function<std::span<float>(const Slice&)> values = [this](const Slice& slice) {
    return weights(slice);
  };
  auto* const staging = reinterpret_cast<float*>(staging_.get());
  std::vector<SliceCursor> cursors;
  std::vector<size_t> left;
  for (int worker = 0; worker < shards_.workers(); ++worker) {
    cursors.emplace_back(shards_.of(worker, bucket), values);
    left.push_back(0);
    for (const Slice& slice : shards_.of(worker, bucket)) left.back() += values(slice).size();
  }
  while (std::any_of(left.begin(), left.end(), [](size_t floats) { return floats > 0; })) {
    std::vector<size_t> sizes, offsets = {0};
    for (size_t& floats : left) {
      const size_t some = std::min(floats, kPieceFloats);
      sizes.push_back(some * sizeof(float));
      offsets.push_back(offsets.back() + some);
      floats -= some;
    }
    cursors[rank_].next(offsets[rank_ + 1] - offsets[rank_], [&](std::span<float> own, size_t at) {
      std::copy(own.begin(), own.end(), staging + offsets[rank_] + at);
    });
    const auto all = std::as_writable_bytes(std::span(staging, offsets.back()));
    const auto own = all.subspan(offsets[rank_] * sizeof(float), sizes[rank_]);
    group.all_gather(own, all, sizes, {.label = "weights"});
    for (int worker = 0; worker < shards_.workers(); ++worker) {
      if (worker == rank_ || !keep) continue;
      cursors[worker].next(
          offsets[worker + 1] - offsets[worker], [&](std::span<float> theirs, size_t at) {
            std::copy_n(staging + offsets[worker] + at, theirs.size(), theirs.begin());
          });
    }
  }
}

std::vector<std::vector<std::span<float>>> ShardedUpdate::weights_of_workers() const {
  std::vector<std::vector<std::span<float>>> all(static_cast<size_t>(shards_.workers()));
  for (int worker = 0; worker < shards_.workers(); ++worker)
    for (int bucket = 0; bucket < shards_.buckets(); ++bucket)
      for (const Slice& slice : shards_.of(worker, bucket)) all[worker].push_back(weights(slice));
  return all;
}

void ShardedUpdate::forget_weights(int bucket) {
  for (int worker = 0; worker < shards_.workers(); ++worker)
    for (const Slice& slice : shards_.of(worker, bucket))
      if (worker != rank_) forget(std::as_writable_bytes(weights(slice)));
}

}  // namespace artel
