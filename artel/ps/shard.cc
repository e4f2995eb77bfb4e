#include "artel/ps/shard.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/optim/running_average.h"

namespace artel::ps {
namespace {

constexpr uint64_t kCachedFloats = 16384;  // sums of this many stay in the cache until they are
                                           // used

}  // namespace

Shard::Shard(const Setup& setup, std::unique_ptr<UpdateRule> rule, const Allocate& allocate)
    : keys_(setup.keys), segments_(setup.segments), rule_(std::move(rule)) {
  uint64_t end = 0;
  for (const Segment& segment : segments_) {
    require(segment.keys.first >= end && segment.keys.last >= segment.keys.first,
            ErrorKind::invalid_argument,
            "[ps] segment '{}': got keys {} to {}, expected keys from {} on", segment.name,
            segment.keys.first, segment.keys.last, end);
    end = segment.keys.last;
    const KeyRange own = intersection(segment.keys, keys_);
    require(!rule_->needs_whole_segments() || own.empty() || own == segment.keys ||
                segment.kind != SegmentKind::weight,
            ErrorKind::invalid_argument,
            "[ps] segment '{}' is split between servers, but its update rule needs whole segments",
            segment.name);
  }
  const size_t bytes = keys_.size() * sizeof(float);
  values_ = allocate(bytes);
  for (size_t i = 0; i < rule_->states().size(); ++i) states_.push_back(allocate(bytes));
}

std::span<float> Shard::part(const comm::SharedBytes& memory, const KeyRange& keys) const {
  return {reinterpret_cast<float*>(memory.get()) + (keys.first - keys_.first), keys.size()};
}

std::span<float> Shard::values(const KeyRange& keys) { return part(values_, keys); }

std::span<float> Shard::state(int index, const KeyRange& keys) {
  require(index >= 0 && index < states(), ErrorKind::invalid_argument,
          "[ps] state of the update rule: got {}, expected 0 to {}", index, states() - 1);
  return part(states_[static_cast<size_t>(index)], keys);
}

size_t Shard::first_segment(uint64_t key) const {
  return static_cast<size_t>(
      std::partition_point(segments_.begin(), segments_.end(),
                           [&](const Segment& segment) { return segment.keys.last <= key; }) -
      segments_.begin());
}

uint64_t Shard::most_keys_at_once() const {
  return rule_->needs_whole_segments() ? keys_.size() : kCachedFloats;
}

void Shard::apply(const KeyRange& keys, std::span<const float> sum, const Step& step, int lanes,
                  int own) {
  std::vector<std::span<float>> states(states_.size());
  for (size_t i = first_segment(keys.first);
       i < segments_.size() && segments_[i].keys.first < keys.last; ++i) {
    const Segment& segment = segments_[i];
    const KeyRange here = intersection(segment.keys, keys);
    if (here.empty()) continue;
    const std::span<const float> pushed = sum.subspan(here.first - keys.first, here.size());
    const std::span<float> own_values = values(here);
    switch (segment.kind) {
      case SegmentKind::weight:
        for (size_t k = 0; k < states.size(); ++k) states[k] = part(states_[k], here);
        rule_->apply(segment, step, own_values, pushed, states);
        break;
      case SegmentKind::average:
        optim::follow(own_values, pushed, segment.momentum, lanes, own);
        break;
      case SegmentKind::sum:
        std::copy(pushed.begin(), pushed.end(), own_values.begin());
        break;
    }
  }
}

void Shard::for_each(const std::function<void(const Segment&, std::span<const float>)>& visit) {
  for (const Segment& segment : segments_) {
    const KeyRange here = intersection(segment.keys, keys_);
    if (!here.empty()) visit(segment, values(here));
  }
}

std::string Shard::name_of(uint64_t key) const {
  const size_t index = first_segment(key);
  return index < segments_.size() && segments_[index].keys.first <= key ? segments_[index].name
                                                                        : "padding";
}

}  // namespace artel::ps
