#include "artel/optim/proximal.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {
namespace {

class ProximalRule : public UpdateRule {
 public:
  explicit ProximalRule(const Proximal& settings) : settings_(settings) {}

  std::vector<std::string> states() const override {
    if (!settings_.curvature) return {};
    return {"curvature"};
  }
  bool needs_whole_segments() const override { return settings_.group > 0; }

  void apply(const Segment& segment, const Step& step, std::span<float> values,
             std::span<const float> gradient,
             std::span<const std::span<float>> states) const override {
    const auto size = static_cast<size_t>(settings_.group > 0 ? settings_.group_size : 1);
    for (size_t i = 0; i < values.size(); i += size) {
      const size_t count = std::min(size, values.size() - i);
      const float rate = step.learning_rate * inverse_curvature(states, i, count);
      if (rate == 0) continue;
      const std::span<float> part = values.subspan(i, count);
      for (size_t k = 0; k < count; ++k) part[k] -= rate * step.scale * gradient[i + k];
      if (!segment.decays) continue;
      optim::prox_elastic_net(part, rate * static_cast<float>(settings_.l1),
                              rate * static_cast<float>(settings_.l2));
      if (settings_.group > 0) optim::prox_group(part, rate * static_cast<float>(settings_.group));
    }
  }

 private:
  // Uses the largest curvature of a group; 0 for keys without samples.
  float inverse_curvature(std::span<const std::span<float>> states, size_t first,
                          size_t count) const {
    if (!settings_.curvature) return 1;
    const auto part = states[0].subspan(first, count);
    const float largest = *std::max_element(part.begin(), part.end());
    return largest > 0 ? 1 / largest : 0;
  }

  Proximal settings_;
};

}  // namespace

double Proximal::penalty(std::span<const float> values) const {
  double sum = 0;
  for (const float value : values)
    sum += l1 * std::abs(static_cast<double>(value)) + l2 / 2 * value * static_cast<double>(value);
  const auto size = static_cast<size_t>(group_size);
  for (size_t i = 0; group > 0 && i < values.size(); i += size) {
    double squares = 0;
    for (size_t k = i; k < std::min(i + size, values.size()); ++k)
      squares += static_cast<double>(values[k]) * values[k];
    sum += group * std::sqrt(squares);
  }
  return sum;
}

Proximal proximal_from_options(const optim::Options& options) {
  Proximal settings;
  optim::read_options("update rule proximal", options, settings);
  require(settings.l1 >= 0 && settings.l2 >= 0 && settings.group >= 0 && settings.group_size >= 1,
          ErrorKind::invalid_argument,
          "[update rule proximal] got l1 = {}, l2 = {}, group = {}, group_size = {}, expected no "
          "negative weights and groups of at least 1",
          settings.l1, settings.l2, settings.group, settings.group_size);
  return settings;
}

std::unique_ptr<UpdateRule> make_proximal_rule(const Proximal& settings) {
  return std::make_unique<ProximalRule>(settings);
}

}  // namespace artel::ps
