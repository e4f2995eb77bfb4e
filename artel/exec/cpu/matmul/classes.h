// Rows of scores read as answers.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

// The first of the largest scores of each row.
void argmax(ThreadPool& pool, int64_t rows, int64_t classes, const float* scores, int32_t* result);

struct LabelCounts {
  int64_t top = 0;     // labels that are among the k largest scores of their row
  int64_t labels = 0;  // that are not `ignored`
};
// The first of equal scores counts as larger, and NaN as larger than any, so a network that
// produces NaN is not correct. A label out of range is never among the largest.
LabelCounts count_top(ThreadPool& pool, int64_t rows, int64_t classes, int64_t k, int32_t ignored,
                      const float* scores, const int32_t* labels);

// The same where the classes are cut into shards. First each gives the scores of the labels that it
// has, then for each row how many of its own scores come before that of the label.
struct ScoreShard {
  int64_t first = 0, classes = 0;
};
void label_scores(const ScoreShard& shard, int64_t rows, const float* scores, const int32_t* labels,
                  float* result);
void count_before(ThreadPool& pool, const ScoreShard& shard, int64_t rows, const float* scores,
                  const int32_t* labels, const float* label_scores, float* result);

}  // namespace artel::kernels
