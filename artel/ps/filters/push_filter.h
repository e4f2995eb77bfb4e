// Filters of sparse pushes, which select the entries of a gradient to send. One file per filter.
// (Key caching is in key_cache.h, compression of values in value_packing.h.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace artel::ps {

// A gradient before it is pushed.
struct PushEntries {
  std::span<float> gradient;       // may be changed
  std::span<const float> weights;  // the worker's copy
  std::span<uint8_t> keep;         // set to 0 for entries that are not sent
  int64_t iteration = 0;
};

class PushFilter {
 public:
  virtual ~PushFilter() = default;
  virtual void apply(const PushEntries& entries) const = 0;
};

// The Karush-Kuhn-Tucker filter for an L1 penalty. A zero weight stays zero while the sum of all
// workers' gradients is below the penalty, so a worker does not send entries below its share.
// `threshold` is that share, penalty / workers, or less for safety.
std::unique_ptr<PushFilter> make_kkt_filter(double threshold);

// Sends entries below `threshold` with probability |entry| / threshold, rounded to plus or minus
// the threshold, which preserves the mean.
std::unique_ptr<PushFilter> make_random_skip(double threshold, uint64_t seed);

}  // namespace artel::ps
