#include <cmath>

#include "artel/base/random.h"
#include "artel/ps/filters/push_filter.h"

namespace artel::ps {
namespace {

class RandomSkip : public PushFilter {
 public:
  RandomSkip(double threshold, uint64_t seed)
      : threshold_(static_cast<float>(threshold)), seed_(seed) {}

  void apply(const PushEntries& entries) const override {
    Random random{seed_, hash_name("skip"), static_cast<uint64_t>(entries.iteration)};
    for (size_t i = 0; i < entries.gradient.size(); ++i) {
      float& value = entries.gradient[i];
      if (entries.keep[i] == 0 || std::abs(value) >= threshold_) continue;
      if (random.uniform() * threshold_ < std::abs(value))
        value = std::copysign(threshold_, value);
      else
        entries.keep[i] = 0;
    }
  }

 private:
  float threshold_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<PushFilter> make_random_skip(double threshold, uint64_t seed) {
  return std::make_unique<RandomSkip>(threshold, seed);
}

}  // namespace artel::ps
