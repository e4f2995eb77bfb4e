// Filters of sparse pushes: which entries of a gradient are worth sending. One file per filter.
// (Key caching is key_cache.h, compression of values is value_packing.h.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace artel::ps {

// A gradient that is about to be pushed.
struct PushEntries {
  std::span<float> gradient;       // may be changed
  std::span<const float> weights;  // as the worker knows them
  std::span<uint8_t> keep;         // set to 0 for what is not to be sent
  int64_t iteration = 0;
};

class PushFilter {
 public:
  virtual ~PushFilter() = default;
  virtual void apply(const PushEntries& entries) const = 0;
};

// The Karush-Kuhn-Tucker filter for an L1 penalty: a weight that is zero stays zero while the sum
// of all workers' gradients is less than the penalty, so a worker does not send entries below its
// share. `threshold` is that share: penalty / workers, or less to be careful.
std::unique_ptr<PushFilter> make_kkt_filter(double threshold);

// Entries smaller than `threshold` are sent with a probability of their magnitude divided by the
// threshold, as plus or minus the threshold, which preserves the mean.
std::unique_ptr<PushFilter> make_random_skip(double threshold, uint64_t seed);

}  // namespace artel::ps
