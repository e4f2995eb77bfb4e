// How the error falls with more samples, and what it would be with more still.
#pragma once

#include <cstdint>
#include <vector>

namespace artel::transfer {

// The errors of several trainings on so many samples.
struct CurvePoint {
  int64_t samples = 0;
  std::vector<double> errors;
  double mean() const;
};

// error = floor + factor * samples^-power, the least squares over all points.
struct PowerLaw {
  double floor = 0, factor = 0, power = 1;
  double at(double samples) const;
};
PowerLaw fit_power_law(const std::vector<CurvePoint>& points);

// Of the error with more samples: the likeliest value, and the limits between which 80 % of the
// curves lie that go through other draws of the same measurements.
struct Extrapolation {
  double error = 0, low = 0, high = 0;
};
Extrapolation extrapolate(const std::vector<CurvePoint>& points, int64_t samples,
                          uint64_t seed = 0);

}  // namespace artel::transfer
