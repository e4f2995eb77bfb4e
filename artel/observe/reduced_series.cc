#include "artel/observe/reduced_series.h"

#include <algorithm>
#include <cmath>

namespace artel::observe {

void ReducedSeries::Pair::include(const Pair& other) {
  if (other.low < low) {
    low = other.low;
    low_step = other.low_step;
  }
  if (other.high > high) {
    high = other.high;
    high_step = other.high_step;
  }
}

void ReducedSeries::add(int64_t step, double value) {
  if (!std::isfinite(value)) return;
  last_step_ = step;
  last_ = value;
  const Pair point = {step, step, value, value};
  if (!pairs_.empty() && in_last_ < merged_) {
    pairs_.back().include(point);
    ++in_last_;
    return;
  }
  if (pairs_.size() == most_) {
    for (size_t i = 0; 2 * i + 1 < pairs_.size(); ++i) {
      pairs_[i] = pairs_[2 * i];
      pairs_[i].include(pairs_[2 * i + 1]);
    }
    if (pairs_.size() % 2 == 1) pairs_[pairs_.size() / 2] = pairs_.back();
    pairs_.resize((pairs_.size() + 1) / 2);
    merged_ *= 2;
  }
  pairs_.push_back(point);
  in_last_ = 1;
}

ReducedSeries::Points ReducedSeries::points(size_t most, int64_t from, int64_t to) const {
  const auto begin = std::ranges::find_if(
      pairs_, [&](const Pair& pair) { return std::max(pair.low_step, pair.high_step) >= from; });
  const auto end = std::find_if(begin, pairs_.end(), [&](const Pair& pair) {
    return std::min(pair.low_step, pair.high_step) > to;
  });
  const auto count = static_cast<size_t>(end - begin);
  const size_t together = std::max<size_t>(1, (2 * count + most - 1) / std::max<size_t>(most, 2));
  Points points;
  const auto add = [&](int64_t step, double value) {
    points.x.push_back(step);
    points.y.push_back(value);
  };
  for (size_t i = 0; i < count; i += together) {
    Pair pair = begin[static_cast<std::ptrdiff_t>(i)];
    for (size_t j = i + 1; j < std::min(i + together, count); ++j)
      pair.include(begin[static_cast<std::ptrdiff_t>(j)]);
    const bool low_first = pair.low_step < pair.high_step;
    if (low_first) add(pair.low_step, pair.low);
    add(pair.high_step, pair.high);
    if (!low_first && pair.low_step > pair.high_step) add(pair.low_step, pair.low);
  }
  // Adds the last point, which may not be an extreme.
  if (!points.x.empty() && end == pairs_.end() && points.x.back() < last_step_)
    add(last_step_, last_);
  return points;
}

}  // namespace artel::observe
