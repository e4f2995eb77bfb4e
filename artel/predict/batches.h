// What training and evaluation share about batches.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

// The type of `samples` samples of a type.
TensorType batch_of(const TensorType& sample, int64_t samples);

// How many rows have their largest output at the label; 0 unless predictions are [..., classes] and
// labels are i32, one for each row.
int64_t count_correct(const Tensor& prediction, const Tensor& labels);
// Of shares of classes, [rows, classes]: for each row the first class with the largest share.
Tensor largest_shares(const Tensor& shares);
// How many labels there are to be right about: those that cross entropy does not ignore.
int64_t count_labels(const Tensor& labels);

}  // namespace artel
