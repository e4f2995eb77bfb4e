#include "artel/ps/gathering.h"

#include <algorithm>
#include <iterator>

#include "artel/base/error.h"
#include "artel/optim/clipping.h"
#include "artel/optim/kernels.h"

namespace artel::ps {
namespace {

constexpr uint64_t kNear = 64;  // smaller gaps cost less than another range

}  // namespace

void Gathering::add(Contribution contribution) {
  const comm::LaneRange lanes = contribution.lanes;
  require(lanes.size() >= 1 && lanes.last <= lanes_, ErrorKind::invalid_argument,
          "[ps] push: got lanes {} to {}, expected some of 0 to {}", lanes.first, lanes.last,
          lanes_);
  const size_t nodes = comm::lane_subtrees(lanes_, lanes).size();
  require(contribution.partials.size() == nodes, ErrorKind::invalid_argument,
          "[ps] push: got {} partial sums, expected {} for lanes {} to {} of {}",
          contribution.partials.size(), nodes, lanes.first, lanes.last, lanes_);
  const auto behind =
      std::partition_point(contributions_.begin(), contributions_.end(),
                           [&](const Contribution& c) { return c.lanes.first < lanes.first; });
  require((behind == contributions_.begin() || (behind - 1)->lanes.last <= lanes.first) &&
              (behind == contributions_.end() || behind->lanes.first >= lanes.last),
          ErrorKind::invalid_argument, "[ps] push: lanes {} to {} were pushed already", lanes.first,
          lanes.last);
  require(!same_list ||
              (contribution.listed &&
               (contributions_.empty() || *contribution.listed == *contributions_.front().listed)),
          ErrorKind::invalid_argument,
          "[ps] push: got other keys of {} to {} from lanes {} to {} than from the other lanes",
          keys_.first, keys_.last, lanes.first, lanes.last);
  contributions_.insert(behind, std::move(contribution));
}

bool Gathering::complete(const std::function<bool(int lane)>& is_gone) const {
  int next = 0;
  const auto covered_up_to = [&](int lane) {
    while (next < lane && is_gone(next)) ++next;
    return next >= lane;
  };
  for (const Contribution& contribution : contributions_) {
    if (!covered_up_to(contribution.lanes.first)) return false;
    next = contribution.lanes.last;
  }
  return covered_up_to(lanes_);
}

std::vector<KeyRange> Gathering::ranges(uint64_t most) const {
  std::vector<KeyRange> ranges;
  const bool listed = std::all_of(contributions_.begin(), contributions_.end(),
                                  [](const Contribution& c) { return c.listed != nullptr; });
  if (!listed) {
    for (uint64_t first = keys_.first; first < keys_.last; first += most)
      ranges.push_back({first, std::min(first + most, keys_.last)});
    return ranges;
  }
  const uint64_t near = same_list ? 1 : kNear;
  std::vector<uint64_t> keys;
  if (same_list) keys = *contributions_.front().listed;
  for (const Contribution& contribution : contributions_) {
    if (same_list) break;
    std::vector<uint64_t> both;
    std::set_union(keys.begin(), keys.end(), contribution.listed->begin(),
                   contribution.listed->end(), std::back_inserter(both));
    keys = std::move(both);
  }
  for (const uint64_t key : keys) {
    if (!ranges.empty() && key - ranges.back().last < near && key + 1 - ranges.back().first <= most)
      ranges.back().last = key + 1;
    else
      ranges.push_back({key, key + 1});
  }
  return ranges;
}

void Gathering::sum(uint64_t first, std::span<float> sum) const {
  std::vector<comm::LaneRange> nodes;
  std::vector<const std::byte*> sources;
  int lanes = 0;
  bool listed = false;
  uint64_t begin = first - keys_.first;  // in the partial sums
  if (same_list) {
    const std::vector<uint64_t>& keys = *contributions_.front().listed;
    begin = static_cast<uint64_t>(std::ranges::lower_bound(keys, first) - keys.begin());
  }
  for (const Contribution& contribution : contributions_) {
    const auto own = comm::lane_subtrees(lanes_, contribution.lanes);
    nodes.insert(nodes.end(), own.begin(), own.end());
    for (const float* partial : contribution.partials)
      sources.push_back(reinterpret_cast<const std::byte*>(partial + begin));
    lanes += contribution.lanes.size();
    listed |= contribution.listed != nullptr && !same_list;
  }
  if (lanes == lanes_ && !listed) {
    auto* const target = reinterpret_cast<std::byte*>(sum.data());
    comm::LaneTree(lanes_, std::move(nodes))
        .add(sources, std::span(&target, 1), comm::ElementType::f32, sum.size());
    return;
  }
  std::fill(sum.begin(), sum.end(), 0.0f);
  const uint64_t last = first + sum.size();
  for (const Contribution& contribution : contributions_)
    for (const float* partial : contribution.partials) {
      if (!contribution.listed) {
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += partial[first - keys_.first + i];
        continue;
      }
      const std::vector<uint64_t>& keys = *contribution.listed;
      auto at = std::lower_bound(keys.begin(), keys.end(), first);
      for (; at != keys.end() && *at < last; ++at) sum[*at - first] += partial[at - keys.begin()];
    }
}

double Gathering::sum_of_squares(const KeyRange& segment) const {
  // Uses the chunks of that function, so that sums stay in the cache until they are squared.
  constexpr uint64_t kChunk = optim::kernels::kChunk;
  ThreadPool here(1);
  std::vector<float> chunk(std::min(kChunk, segment.size()));
  double squares = 0;
  for (uint64_t first = segment.first; first < segment.last; first += kChunk) {
    const auto part = std::span(chunk).first(std::min(kChunk, segment.last - first));
    sum(first, part);
    squares += optim::sum_of_squares(here, part);
  }
  return squares;
}

}  // namespace artel::ps
