// The loss of a linear model as a function of the margin x.w: logistic for targets -1 and 1, or
// half the squared error.
#pragma once

#include <cmath>

namespace artel::ps {

struct MarginLoss {
  bool logistic;

  float slope(float target, float margin) const {
    if (!logistic) return margin - target;
    return -target / (1 + std::exp(target * margin));
  }
  double value(float target, float margin) const {
    if (!logistic) return 0.5 * (margin - target) * static_cast<double>(margin - target);
    const double x = -static_cast<double>(target) * margin;
    return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  // Maximum of the second derivative.
  float curvature() const { return logistic ? 0.25f : 1.0f; }
};

}  // namespace artel::ps
