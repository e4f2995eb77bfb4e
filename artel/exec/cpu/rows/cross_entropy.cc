#include "artel/exec/cpu/rows/cross_entropy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "artel/base/error.h"
#include "artel/exec/cpu/rows/row_chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/cross_entropy.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// The loss of a row is the sum over classes of coefficient * -log(probability). The coefficients
// are a smooth part, the same formula for all classes, and, with labels, an extra for the label.
struct Coefficients {
  const float* probabilities;  // of this row, or null
  const float* weights;
  float smooth, sharp;  // smooth = smoothing / classes, sharp = 1 - smoothing
  bool dense;           // whether the smooth part is not all 0
  int64_t label;        // -1 with probabilities
  float extra;

  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, int64_t i) const {
    auto value = hn::Set(d, smooth);
    if (probabilities)
      value = hn::MulAdd(hn::LoadU(d, probabilities + i), hn::Set(d, sharp), value);
    return weights ? hn::Mul(value, hn::LoadU(d, weights + i)) : value;
  }
};

HWY_INLINE Coefficients coefficients(const CrossEntropyTarget& target, int64_t row,
                                     int64_t classes) {
  const float sharp = 1 - target.label_smoothing;
  const float smooth = target.label_smoothing / static_cast<float>(classes);
  if (target.probabilities) {
    return {target.probabilities + row * classes, target.class_weights, smooth, sharp, true, -1, 0};
  }
  const int64_t label = target.labels[row];
  const float weight = target.class_weights ? target.class_weights[label] : 1.0f;
  return {nullptr, target.class_weights, smooth, sharp, smooth != 0, label, sharp * weight};
}

HWY_INLINE float row_loss(const Coefficients& coefficient, int64_t classes, const float* x,
                          const LogSum& log_sum) {
  float loss = 0;
  if (coefficient.dense) {
    loss = fold_sum(classes, [&](auto d, int64_t i) HWY_ATTR {
      const auto distance = hn::Sub(hn::Set(d, log_sum.largest), hn::LoadU(d, x + i));
      return hn::Mul(coefficient.at(d, i), hn::Add(distance, hn::Set(d, log_sum.rest)));
    });
  }
  if (coefficient.label >= 0)
    loss += coefficient.extra * (log_sum.largest - x[coefficient.label] + log_sum.rest);
  return loss;
}

// (probability * sum of coefficients - coefficient) * scale.
HWY_INLINE void row_gradient(const Coefficients& coefficient, int64_t classes, const float* x,
                             const LogSum& log_sum, float scale, float* gradient) {
  float total = coefficient.extra;
  if (coefficient.dense) {
    total += fold_sum(classes, [&](auto d, int64_t i) HWY_ATTR { return coefficient.at(d, i); });
  }
  for_each_vector(classes, [&](auto d, int64_t i) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, log_sum.largest));
    auto value = exp(d, hn::Sub(distance, hn::Set(d, log_sum.rest)));
    value = hn::Mul(value, hn::Set(d, total));
    if (coefficient.dense) value = hn::Sub(value, coefficient.at(d, i));
    hn::StoreU(hn::Mul(value, hn::Set(d, scale)), d, gradient + i);
  });
  if (coefficient.label >= 0) gradient[coefficient.label] -= coefficient.extra * scale;
}

HWY_INLINE bool ignored(const CrossEntropyTarget& target, int64_t row) {
  return target.labels && target.labels[row] == target.ignore_index;
}

// The sum of the losses of the rows [begin, end).
double loss_chunk(const CrossEntropyTarget& target, int64_t begin, int64_t end, int64_t classes,
                  const float* logits, float scale, float* log_sums, float* gradient) {
  double sum = 0;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * classes;
    float* dx = gradient ? gradient + row * classes : nullptr;
    const LogSum log_sum = row_log_sum(classes, x);
    log_sum.save(log_sums, row);
    if (ignored(target, row)) {
      if (dx) std::fill_n(dx, classes, 0.0f);
      continue;
    }
    const Coefficients coefficient = coefficients(target, row, classes);
    sum += row_loss(coefficient, classes, x, log_sum);
    if (dx) row_gradient(coefficient, classes, x, log_sum, scale, dx);
  }
  return sum;
}

void gradient_rows(const CrossEntropyTarget& target, int64_t begin, int64_t end, int64_t classes,
                   const float* logits, float scale, const float* log_sums, float* gradient) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * classes;
    float* dx = gradient + row * classes;
    if (ignored(target, row)) {
      std::fill_n(dx, classes, 0.0f);
    } else {
      row_gradient(coefficients(target, row, classes), classes, x, LogSum::load(log_sums, row),
                   scale, dx);
    }
  }
}

void shard_sums(const ClassShard& shard, int64_t begin, int64_t end, const int32_t* labels,
                const float* logits, float* sums) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = logits + row * shard.classes;
    const LogSum log_sum = row_log_sum(shard.classes, x);
    float* const out = sums + row * kShardSums;
    out[0] = log_sum.largest;
    out[1] = log_sum.rest;
    out[2] = shard.has(labels[row]) ? x[labels[row] - shard.first] : 0.0f;
  }
}

void shard_gradient(const ClassShard& shard, int64_t begin, int64_t end, const int32_t* labels,
                    int32_t ignore_index, const float* logits, float scale, const float* log_sums,
                    float* gradient) {
  for (int64_t row = begin; row < end; ++row) {
    float* dx = gradient + row * shard.classes;
    if (labels[row] == ignore_index) {
      std::fill_n(dx, shard.classes, 0.0f);
      continue;
    }
    const int64_t label = shard.has(labels[row]) ? labels[row] - shard.first : -1;
    row_gradient({nullptr, nullptr, 0, 1, false, label, 1}, shard.classes,
                 logits + row * shard.classes, LogSum::load(log_sums, row), scale, dx);
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(loss_chunk);
HWY_EXPORT(gradient_rows);
HWY_EXPORT(shard_sums);
HWY_EXPORT(shard_gradient);

namespace {

// The sum of the weights of all rows. Checks the labels.
double total_weight(const CrossEntropyTarget& target, int64_t rows, int64_t classes) {
  require((target.labels == nullptr) != (target.probabilities == nullptr) || rows == 0,
          ErrorKind::internal,
          "[cross_entropy] target: expected either labels or probabilities of the rows");
  if (!target.labels) return static_cast<double>(rows);
  double total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t label = target.labels[row];
    if (label == target.ignore_index) continue;
    require(label >= 0 && label < classes, ErrorKind::invalid_argument,
            "[cross_entropy] label of row {}: got {}, expected 0 to {} or {} (ignored)", row, label,
            classes - 1, target.ignore_index);
    total += target.class_weights ? target.class_weights[label] : 1.0;
  }
  return total;
}

// Targets of another kind give a loss without a lower bound.
void check_probabilities(const CrossEntropyTarget& target, int64_t rows, int64_t classes) {
  constexpr double kRounding = 1e-3;
  if (!target.probabilities) return;
  for (int64_t row = 0; row < rows; ++row) {
    const std::span all(target.probabilities + row * classes, static_cast<size_t>(classes));
    double sum = 0;
    bool negative = false;
    for (const float share : all) {
      sum += share;
      negative = negative || share < -kRounding;
    }
    require(!negative && std::fabs(sum - 1) <= kRounding, ErrorKind::invalid_argument,
            "[cross_entropy] target of row {}: got {} numbers from {} to {} with the sum {:.6g}, "
            "expected probabilities, which add up to 1; for other numbers try the loss \"mse\"",
            row, classes, *std::ranges::min_element(all), *std::ranges::max_element(all), sum);
  }
}

// The number by which the sum of the losses is divided.
struct Divisor {
  double number;

  Divisor(const CrossEntropyTarget& target, int64_t rows, double weight)
      : number(target.over_rows ? static_cast<double>(rows) : weight) {}
  float mean(double sum) const {
    return number > 0 ? static_cast<float>(sum / number) : std::numeric_limits<float>::quiet_NaN();
  }
  float scale(double dloss) const { return number > 0 ? static_cast<float>(dloss / number) : 0.0f; }
};

float mean_weight(double weight, int64_t rows) {
  return rows > 0 ? static_cast<float>(weight / static_cast<double>(rows)) : 0.0f;
}

// Rows that are worth a task of their own.
int64_t loss_row_grain(int64_t classes) { return std::max<int64_t>(1, 4096 / (classes + 1)); }

}  // namespace

float cross_entropy(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                    int64_t classes, const float* logits, float* loss, float* log_sums,
                    float* gradient) {
  const double weight = total_weight(target, rows, classes);
  check_probabilities(target, rows, classes);
  const Divisor divisor(target, rows, weight);
  const float scale = divisor.scale(1);
  const auto chunk = HWY_DYNAMIC_DISPATCH(loss_chunk);
  std::array<double, RowChunks::kMaxChunks> partial;
  RowChunks(rows).sum(
      pool, 1, partial.data(),
      [&](int64_t begin, int64_t end, double* sum) {
        *sum = chunk(target, begin, end, classes, logits, scale, log_sums, gradient);
      },
      [&](int64_t, double total) { *loss = divisor.mean(total); });
  return mean_weight(weight, rows);
}

void cross_entropy_backward(ThreadPool& pool, const CrossEntropyTarget& target, int64_t rows,
                            int64_t classes, const float* logits, const float* log_sums,
                            const float* dloss, float* gradient) {
  const Divisor divisor(target, rows, total_weight(target, rows, classes));
  const float scale = divisor.scale(*dloss);
  const auto range = HWY_DYNAMIC_DISPATCH(gradient_rows);
  parallel_for(pool, rows, loss_row_grain(classes), [&](int64_t begin, int64_t end) {
    range(target, begin, end, classes, logits, scale, log_sums, gradient);
  });
}

void cross_entropy_shard(ThreadPool& pool, const ClassShard& shard, int64_t rows,
                         const int32_t* labels, const float* logits, float* sums) {
  const auto range = HWY_DYNAMIC_DISPATCH(shard_sums);
  parallel_for(pool, rows, loss_row_grain(shard.classes),
               [&](int64_t begin, int64_t end) { range(shard, begin, end, labels, logits, sums); });
}

float cross_entropy_of_shards(int shards, const CrossEntropyTarget& target, int64_t rows,
                              int64_t classes, const float* sums, float* loss, float* log_sums) {
  const double weight = total_weight(target, rows, classes);
  double total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const auto of = [&](int shard, int which) {
      return sums[(shard * rows + row) * kShardSums + which];
    };
    float largest = of(0, 0);
    for (int shard = 1; shard < shards; ++shard) largest = std::max(largest, of(shard, 0));
    double sum = 0, label = 0;
    for (int shard = 0; shard < shards; ++shard) {
      sum += std::exp(double{of(shard, 0)} - largest + of(shard, 1));
      label += of(shard, 2);
    }
    const LogSum log_sum = {largest, static_cast<float>(std::log(sum))};
    log_sum.save(log_sums, row);
    if (target.labels[row] != target.ignore_index) total += log_sum.largest - label + log_sum.rest;
  }
  *loss = Divisor(target, rows, weight).mean(total);
  return mean_weight(weight, rows);
}

void cross_entropy_shard_backward(ThreadPool& pool, const ClassShard& shard,
                                  const CrossEntropyTarget& target, int64_t rows, int64_t classes,
                                  const float* logits, const float* log_sums, const float* dloss,
                                  float* gradient) {
  const Divisor divisor(target, rows, total_weight(target, rows, classes));
  const float scale = divisor.scale(*dloss);
  const auto range = HWY_DYNAMIC_DISPATCH(shard_gradient);
  parallel_for(pool, rows, loss_row_grain(shard.classes), [&](int64_t begin, int64_t end) {
    range(shard, begin, end, target.labels, target.ignore_index, logits, scale, log_sums, gradient);
  });
}

}  // namespace artel::kernels
#endif
