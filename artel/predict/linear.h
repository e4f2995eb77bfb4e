// The linear model (nn/zoo/classic.h) and sparse rows: what costs as much as there are numbers.
#pragma once

#include <vector>

#include "artel/data/sparse_rows.h"
#include "artel/exec/parameters.h"

namespace artel {

// The weights of this many features, then the bias, among the parameters and back. The
// model may have more features, which get zeros.
std::vector<float> linear_weights(const Parameters& parameters, int64_t features);
void set_linear_weights(Parameters& parameters, const std::vector<float>& weights);

struct LinearSums {
  double loss = 0;      // cross entropy of two classes, or squared errors
  int64_t correct = 0;  // of classes
};
// Targets are `classes`, 0 and 1, or values.
LinearSums evaluate_linear(const data::SparseRows& rows, const Parameters& parameters,
                           bool classes);

}  // namespace artel
