// The linear model (nn/zoo/classic.h) on sparse rows, in time proportional to the number of
// entries.
#pragma once

#include <vector>

#include "artel/data/tables/sparse_rows.h"
#include "artel/exec/parameters.h"

namespace artel {

// Converts between parameters and a vector of `features` weights followed by the bias. Further
// features of the model are set to zero.
std::vector<float> linear_weights(const Parameters& parameters, int64_t features);
void set_linear_weights(Parameters& parameters, const std::vector<float>& weights);

struct LinearSums {
  double loss = 0;      // cross entropy of two classes, or squared errors
  int64_t correct = 0;  // for classes
};
// Targets are 0 and 1 if `classes` is true, values otherwise.
LinearSums evaluate_linear(const data::SparseRows& rows, const Parameters& parameters,
                           bool classes);

}  // namespace artel
