#include "artel/predict/batches.h"

#include <algorithm>

#include "artel/graph/ops.h"

namespace artel {

TensorType batch_of(const TensorType& sample, int64_t samples) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), sample.shape.extents().begin(), sample.shape.extents().end());
  return {sample.dtype, Shape(std::move(extents))};
}

int64_t count_correct(const Tensor& prediction, const Tensor& labels) {
  if (labels.dtype() != DType::i32 || prediction.shape().rank() < 2) return 0;
  const int64_t classes = prediction.shape().back();
  if (classes == 0 || prediction.elements() / classes != labels.elements()) return 0;
  const std::span<const float> outputs = prediction.values<float>();
  int64_t correct = 0;
  for (int64_t row = 0; row < labels.elements(); ++row) {
    const float* begin = outputs.data() + row * classes;
    correct += std::max_element(begin, begin + classes) - begin == labels.values<int32_t>()[row];
  }
  return correct;
}

Tensor largest_shares(const Tensor& shares) {
  const int64_t rows = shares.shape()[0], classes = shares.shape()[1];
  Tensor labels({rows}, DType::i32);
  for (int64_t row = 0; row < rows; ++row) {
    const float* begin = shares.values<float>().data() + row * classes;
    labels.values<int32_t>()[row] =
        static_cast<int32_t>(std::max_element(begin, begin + classes) - begin);
  }
  return labels;
}

int64_t count_labels(const Tensor& labels) {
  if (labels.dtype() != DType::i32) return labels.elements();
  const auto ignored = static_cast<int32_t>(CrossEntropyOptions{}.ignore_index);
  const std::span<const int32_t> all = labels.values<int32_t>();
  return labels.elements() - std::count(all.begin(), all.end(), ignored);
}

}  // namespace artel
