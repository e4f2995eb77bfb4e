// Batch helpers for training and evaluation.
#pragma once

#include "artel/graph/graph.h"

namespace artel {

// The type of a batch of `samples` samples.
TensorType batch_of(const TensorType& sample, int64_t samples);

}  // namespace artel
