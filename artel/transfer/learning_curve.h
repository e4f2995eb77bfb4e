// Learning curves: error by number of samples, and its extrapolation.
#pragma once

#include <cstdint>
#include <vector>

namespace artel::transfer {

// The errors of several trainings on the same number of samples.
struct CurvePoint {
  int64_t samples = 0;
  std::vector<double> errors;
  double mean() const;
};

// error = floor + factor * samples^-power, fitted to all points by least squares.
struct PowerLaw {
  double floor = 0, factor = 0, power = 1;
  double at(double samples) const;
};
PowerLaw fit_power_law(const std::vector<CurvePoint>& points);

// The p of error ~ samples^-p, between 0 and 1: the slope of a line through the logarithms of the
// mean errors. 0 for a single point.
double steepness(const std::vector<CurvePoint>& points);

// Predicted error with more samples, and the 80 % interval of bootstrapped curves.
struct Extrapolation {
  double error = 0, low = 0, high = 0;
};
Extrapolation extrapolate(const std::vector<CurvePoint>& points, int64_t samples,
                          uint64_t seed = 0);

}  // namespace artel::transfer
