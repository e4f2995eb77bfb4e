#include "artel/observe/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace artel::observe {

Histogram histogram_of(std::span<const float> values, int bins) {
  float low = std::numeric_limits<float>::max(), high = std::numeric_limits<float>::lowest();
  Histogram histogram;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    histogram.count += 1;
    histogram.sum += value;
    histogram.squares += double{value} * value;
  }
  if (histogram.count == 0) return histogram;
  histogram.min = low;
  histogram.max = high;
  if (low == high) bins = 1;
  const double width = (histogram.max - histogram.min) / bins;
  std::vector<int64_t> counts(static_cast<size_t>(bins));
  const double scale = width > 0 ? 1 / width : 0;
  for (const float value : values)
    if (std::isfinite(value))
      ++counts[std::min(static_cast<size_t>((value - histogram.min) * scale), counts.size() - 1)];
  for (int bin = 1; bin < bins; ++bin) histogram.limits.push_back(histogram.min + bin * width);
  histogram.limits.push_back(histogram.max);
  histogram.counts.assign(counts.begin(), counts.end());
  return histogram;
}

}  // namespace artel::observe
