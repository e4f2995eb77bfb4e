// How the values of a tensor are distributed.
#pragma once

#include <span>
#include <vector>

namespace artel::observe {

// Of the values that are finite; none of them: `limits` is empty.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits;  // the upper one of each bin
  std::vector<double> counts;
};

// In `bins` bins of equal width, or in one if all values are the same. Reads them twice.
Histogram histogram_of(std::span<const float> values, int bins = 50);

}  // namespace artel::observe
