// Mean and deviation of a column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace artel::data {

// Mean and standard deviation, computed from distances to the first number, so a large common
// offset costs no precision. Numbers that differ only by rounding errors have a deviation of 0.
struct Spread {
  static constexpr double kNoise = 0x1p-44;
  double mean = 0, deviation = 0;

  Spread(std::span<const double> numbers, const std::vector<int64_t>& rows) {
    std::vector<double> distances;
    distances.reserve(rows.size());
    double first = 0, largest = 0;
    for (const int64_t row : rows) {
      if (std::isnan(numbers[row])) continue;
      if (distances.empty()) first = numbers[row];
      distances.push_back(numbers[row] - first);
      largest = std::max(largest, std::abs(distances.back()));
    }
    mean = first;
    if (largest <= kNoise * std::abs(first)) return;
    const auto count = static_cast<double>(distances.size());
    double sum = 0, squares = 0;
    for (const double distance : distances) sum += distance / largest;
    for (const double distance : distances) {
      const double difference = distance / largest - sum / count;
      squares += difference * difference;
    }
    mean = first + largest * (sum / count);
    deviation = largest * std::sqrt(squares / count);
  }
};

}  // namespace artel::data
