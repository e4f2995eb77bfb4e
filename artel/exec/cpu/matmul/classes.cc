#include "artel/exec/cpu/matmul/classes.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace artel::kernels {
namespace {

// Rows that are worth a task of their own.
int64_t grain_of(int64_t classes) { return std::max<int64_t>(1, 16384 / (classes + 1)); }

// The number of scores of a row that come before the label's. Plain comparisons without branches,
// which compilers vectorise. A row has fewer than 2^31 scores.
int32_t rank_of(const float* scores, int64_t classes, int64_t label) {
  const float own = scores[label];
  int32_t before = 0;
  for (int64_t i = 0; i < label; ++i) before += !(scores[i] < own);
  for (int64_t i = label + 1; i < classes; ++i) before += !(scores[i] <= own);
  return before;
}

}  // namespace

void argmax(ThreadPool& pool, int64_t rows, int64_t classes, const float* scores, int32_t* result) {
  parallel_for(pool, rows, grain_of(classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* first = scores + row * classes;
      int64_t best = 0;  // NaN is larger than any number
      for (int64_t i = 1; i < classes && !std::isnan(first[best]); ++i)
        if (!(first[i] <= first[best])) best = i;
      result[row] = static_cast<int32_t>(best);
    }
  });
}

LabelCounts count_top(ThreadPool& pool, int64_t rows, int64_t classes, int64_t k, int32_t ignored,
                      const float* scores, const int32_t* labels) {
  std::atomic<int64_t> top = 0, counted = 0;  // whole numbers: in any order the same sum
  parallel_for(pool, rows, grain_of(classes), [&](int64_t begin, int64_t end) {
    int64_t own_top = 0, own_counted = 0;
    for (int64_t row = begin; row < end; ++row) {
      const int32_t label = labels[row];
      if (label == ignored) continue;
      ++own_counted;
      if (label >= 0 && label < classes)
        own_top += rank_of(scores + row * classes, classes, label) < k;
    }
    top += own_top;
    counted += own_counted;
  });
  return {top, counted};
}

void label_scores(const ScoreShard& shard, int64_t rows, const float* scores, const int32_t* labels,
                  float* result) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t label = labels[row] - shard.first;
    if (label >= 0 && label < shard.classes) result[row] = scores[row * shard.classes + label];
  }
}

void count_before(ThreadPool& pool, const ScoreShard& shard, int64_t rows, const float* scores,
                  const int32_t* labels, const float* label_scores, float* result) {
  parallel_for(pool, rows, grain_of(shard.classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const own = scores + row * shard.classes;
      const float score = label_scores[row];
      const int64_t label = std::clamp<int64_t>(labels[row] - shard.first, -1, shard.classes);
      int32_t before = 0;
      for (int64_t i = 0; i < label; ++i) before += !(own[i] < score);
      for (int64_t i = label + 1; i < shard.classes; ++i) before += !(own[i] <= score);
      result[row] = static_cast<float>(before);
    }
  });
}

}  // namespace artel::kernels
