#include "artel/transfer/learning_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "artel/base/random.h"

namespace artel::transfer {

double CurvePoint::mean() const {
  return errors.empty() ? 0
                        : std::accumulate(errors.begin(), errors.end(), 0.0) /
                              static_cast<double>(errors.size());
}

double PowerLaw::at(double samples) const {
  return std::clamp(floor + factor * std::pow(samples, -power), 0.0, 1.0);
}

double steepness(const std::vector<CurvePoint>& points) {
  if (points.size() < 2) return 0;
  constexpr double kLeastError = 1e-3;
  const auto count = static_cast<double>(points.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const CurvePoint& point : points) {
    const double x = std::log(static_cast<double>(point.samples));
    const double y = std::log(std::max(point.mean(), kLeastError));
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return std::clamp((sx * sy - count * sxy) / (count * sxx - sx * sx), 0.0, 1.0);
}

PowerLaw fit_power_law(const std::vector<CurvePoint>& points) {
  PowerLaw best;
  double least = std::numeric_limits<double>::infinity();
  for (double power = 0.1; power <= 1.5; power += 0.05) {
    // For a given power, the error is linear in x = samples^-power, with nonnegative floor and
    // factor.
    double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (const CurvePoint& point : points)
      for (const double y : point.errors) {
        const double x = std::pow(static_cast<double>(point.samples), -power);
        n += 1;
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
      }
    if (n == 0) return best;
    const double determinant = n * sxx - sx * sx;
    double factor = determinant > 1e-300 ? (n * sxy - sx * sy) / determinant : 0;
    double floor = (sy - factor * sx) / n;
    if (factor < 0) {
      factor = 0;
      floor = sy / n;
    } else if (floor < 0) {
      floor = 0;
      factor = sxx > 0 ? sxy / sxx : 0;
    }
    double wrong = 0;
    for (const CurvePoint& point : points)
      for (const double y : point.errors) {
        const double x = std::pow(static_cast<double>(point.samples), -power);
        wrong += (floor + factor * x - y) * (floor + factor * x - y);
      }
    if (wrong < least - 1e-15) {
      least = wrong;
      best = {floor, factor, power};
    }
  }
  return best;
}

Extrapolation extrapolate(const std::vector<CurvePoint>& points, int64_t samples, uint64_t seed) {
  constexpr int kDraws = 100;
  const auto at = static_cast<double>(samples);
  Extrapolation result = {.error = fit_power_law(points).at(at)};
  std::vector<double> drawn;
  Random random{seed, hash_name("learning curve")};
  for (int i = 0; i < kDraws; ++i) {
    std::vector<CurvePoint> other = points;
    for (CurvePoint& point : other) {
      const std::vector<double> measured = point.errors;
      for (double& error : point.errors) error = measured[random.below(measured.size())];
    }
    drawn.push_back(fit_power_law(other).at(at));
  }
  std::ranges::sort(drawn);
  result.low = std::min(result.error, drawn[kDraws / 10]);
  result.high = std::max(result.error, drawn[kDraws - 1 - kDraws / 10]);
  return result;
}

}  // namespace artel::transfer
