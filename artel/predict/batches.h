// What training and evaluation share about batches.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

// The type of `samples` samples of a type.
TensorType batch_of(const TensorType& sample, int64_t samples);

}  // namespace artel
