// Cross-entropy fused with softmax, the mean over rows as PyTorch defines it.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// What the rows should be: either a label for each row or probabilities, rows x classes.
struct CrossEntropyTarget {
  const int32_t* labels = nullptr;
  const float* probabilities = nullptr;
  const float* class_weights = nullptr;  // null: all 1
  int32_t ignore_index = -100;           // rows with this label count nowhere
  float label_smoothing = 0;
};

// The mean is over the weights of the labels (over the rows with probabilities); it is NaN if
// nothing counts, as in PyTorch, and then the gradient is 0. Outputs: `loss` (one value),
// `log_sum_exp` (one for each row, for the backward pass and for the sum of the loss), and
// `gradient` (rows x classes; may be null or the logits' own memory): the gradient of the mean in
// the same pass. Throws for a label outside of [0, classes).
void cross_entropy(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                   int64_t classes, const float* logits, float* loss, float* log_sum_exp,
                   float* gradient);

// The gradient of the logits times *dloss, from the saved log_sum_exp.
void cross_entropy_backward(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                            int64_t classes, const float* logits, const float* log_sum_exp,
                            const float* dloss, float* gradient);

}  // namespace artel::kernels
