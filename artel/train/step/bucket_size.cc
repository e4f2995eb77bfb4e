#include "artel/train/step/bucket_size.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace artel {

size_t bucket_bytes_for(const comm::LinkCost& link, size_t gradients) {
  // A notice, partial sums, and totals.
  constexpr double kMessages = 3;
  constexpr size_t kLeast = size_t{256} << 10, kMost = size_t{64} << 20;
  const double latency = kMessages * std::max(link.latency, 1e-7);
  const double bytes = std::sqrt(static_cast<double>(gradients) * latency * link.bandwidth);
  const double exponent = std::round(std::log2(std::max(bytes, 1.0)));
  return std::clamp(size_t{1} << static_cast<int>(std::clamp(exponent, 0.0, 40.0)), kLeast, kMost);
}

}  // namespace artel
