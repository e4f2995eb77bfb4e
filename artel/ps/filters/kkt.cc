#include <cmath>

#include "artel/ps/filters/push_filter.h"

namespace artel::ps {
namespace {

class KktFilter : public PushFilter {
 public:
  explicit KktFilter(double threshold) : threshold_(static_cast<float>(threshold)) {}

  void apply(const PushEntries& entries) const override {
    for (size_t i = 0; i < entries.gradient.size(); ++i)
      if (entries.weights[i] == 0 && std::abs(entries.gradient[i]) < threshold_)
        entries.keep[i] = 0;
  }

 private:
  float threshold_;
};

}  // namespace

std::unique_ptr<PushFilter> make_kkt_filter(double threshold) {
  return std::make_unique<KktFilter>(threshold);
}

}  // namespace artel::ps
