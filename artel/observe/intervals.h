// Sets of time, as ordered disjoint intervals.
#pragma once

#include <algorithm>
#include <vector>

namespace artel::observe {

struct Interval {
  double begin = 0, end = 0;
};
using Intervals = std::vector<Interval>;

inline Intervals united(Intervals parts) {
  std::ranges::sort(parts, {}, &Interval::begin);
  Intervals whole;
  for (const Interval& part : parts) {
    if (!(part.end > part.begin)) continue;
    if (!whole.empty() && part.begin <= whole.back().end)
      whole.back().end = std::max(whole.back().end, part.end);
    else
      whole.push_back(part);
  }
  return whole;
}

// Splits `piece` at the borders of `set` and calls use(interval, is_in_the_set) for each part in
// order.
inline void cut(const Interval& piece, const Intervals& set, const auto& use) {
  double at = piece.begin;
  const auto first = std::ranges::upper_bound(set, piece.begin, {}, &Interval::end);
  for (auto next = first; next != set.end() && next->begin < piece.end; ++next) {
    if (next->begin > at) use(Interval{at, next->begin}, false);
    const Interval inside = {std::max(at, next->begin), std::min(next->end, piece.end)};
    use(inside, true);
    at = inside.end;
  }
  if (at < piece.end) use(Interval{at, piece.end}, false);
}

}  // namespace artel::observe
