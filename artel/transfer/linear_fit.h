// Logistic and ridge regression by full-batch L-BFGS (Liu and Nocedal, 1989). Each iteration costs
// two products of the rows with the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel::transfer {

struct LinearFit {
  Tensor weights;   // [outputs, numbers]
  Tensor bias;      // [outputs]
  double loss = 0;  // including the penalty
  int iterations = 0;
};

// Minimises the mean cross entropy (i32 targets, `outputs` classes) or half the mean squared error
// (f32 targets [rows], one output), plus l2 / 2 times the sum of squared weights. `start` may be
// the result for another l2. The bits do not depend on threads.
class LinearFitter {
 public:
  LinearFitter(Tensor rows, Tensor targets, int64_t outputs, int threads);
  ~LinearFitter();
  // Stops when an iteration reduces the loss by less than `least_gain` of its value.
  LinearFit fit(double l2, const LinearFit* start = nullptr, int most_iterations = 200,
                double least_gain = 1e-7) const;
  // Rows times weights plus bias: [rows, outputs].
  static Tensor outputs(const LinearFit& fit, const Tensor& rows, int threads);

 private:
  struct Programs;
  Tensor rows_, targets_;
  int64_t outputs_;
  int threads_;
  std::unique_ptr<Programs> programs_;
};

}  // namespace artel::transfer
