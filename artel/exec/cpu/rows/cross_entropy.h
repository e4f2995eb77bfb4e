// Cross-entropy fused with softmax, the mean over rows as PyTorch defines it.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// The targets of the rows: a label for each row, or probabilities, rows x classes.
struct CrossEntropyTarget {
  const int32_t* labels = nullptr;
  const float* probabilities = nullptr;
  const float* class_weights = nullptr;  // null: all 1
  int32_t ignore_index = -100;           // rows with this label count nowhere
  float label_smoothing = 0;
  bool over_rows = false;  // the loss is divided by the number of rows, not by their weights
};

// The mean is over the weights of the labels (over the rows with probabilities); it is NaN if
// nothing counts, as in PyTorch, and then the gradient is 0. Outputs: `loss` (one value),
// `log_sums` (two for each row, see LogSum, for the backward pass), and
// `gradient` (rows x classes; may be null or the logits' own memory): the gradient of the mean in
// the same pass. Returns the mean weight of the rows. Throws for a label outside of [0, classes)
// and for targets that are not probabilities.
float cross_entropy(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                    int64_t classes, const float* logits, float* loss, float* log_sums,
                    float* gradient);

// The gradient of the logits times *dloss, from the saved log_sums.
void cross_entropy_backward(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                            int64_t classes, const float* logits, const float* log_sums,
                            const float* dloss, float* gradient);

// The same for classes divided into shards, with some shards each.
struct ClassShard {
  int64_t first = 0, classes = 0;

  bool has(int32_t label) const { return label >= first && label < first + classes; }
};
// For each row: the logarithm of the sum of the shard's exponentials (LogSum), and the logit of the
// label, or 0 if another shard has it.
inline constexpr int64_t kShardSums = 3;
void cross_entropy_shard(ThreadPool& pool, const ClassShard& shard, int64_t rows,
                         const int32_t* labels, const float* logits, float* sums);
// Computes the loss and the logarithms of whole rows from the sums of all shards, one shard's rows
// after another's. `target` has labels of `classes` classes in total, without weights or smoothing.
// Returns the mean weight of the rows.
float cross_entropy_of_shards(int shards, const CrossEntropyTarget& target, int64_t rows,
                              int64_t classes, const float* sums, float* loss, float* log_sums);
void cross_entropy_shard_backward(ThreadPool& pool, const ClassShard& shard,
                                  const CrossEntropyTarget& target, int64_t rows, int64_t classes,
                                  const float* logits, const float* log_sums, const float* dloss,
                                  float* gradient);

}  // namespace artel::kernels
