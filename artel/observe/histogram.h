// Histogram of the values of a tensor.
#pragma once

#include <span>
#include <vector>

namespace artel::observe {

// Covers finite values only. `limits` is empty if no value is finite.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> limits;  // upper limit of each bin
  std::vector<double> counts;
};

// Uses `bins` bins of equal width, or one if all values are equal. Reads the values twice.
Histogram histogram_of(std::span<const float> values, int bins = 50);

}  // namespace artel::observe
