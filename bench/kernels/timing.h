// Interleaved timing of alternatives: A, B, A, B ..., so drift of the machine affects all alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "artel/base/random.h"
#include "artel/base/time.h"

namespace artel::bench {

// Memory aligned for kernels, filled with small random numbers.
class Buffer {
 public:
  explicit Buffer(size_t floats)
      : data_(static_cast<float*>(std::aligned_alloc(64, floats / 16 * 64 + 64)), &std::free) {
    Random random{floats};
    for (size_t i = 0; i < floats; ++i) data_.get()[i] = static_cast<float>(random.uniform() - 0.5);
  }
  float* data() const { return data_.get(); }
  std::byte* bytes() const { return reinterpret_cast<std::byte*>(data_.get()); }

 private:
  std::unique_ptr<float, decltype(&std::free)> data_;
};

// The median seconds of each alternative over `repeats` rounds after one round of warm-up.
inline std::vector<double> median_seconds(const std::vector<std::function<void()>>& alternatives,
                                          int repeats) {
  std::vector<std::vector<double>> times(alternatives.size());
  for (int round = -1; round < repeats; ++round) {
    for (size_t i = 0; i < alternatives.size(); ++i) {
      const Clock::time_point start = Clock::now();
      alternatives[i]();
      if (round >= 0) times[i].push_back(seconds_between(start, Clock::now()));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& list : times) {
    std::nth_element(list.begin(), list.begin() + list.size() / 2, list.end());
    medians.push_back(list[list.size() / 2]);
  }
  return medians;
}

}  // namespace artel::bench
