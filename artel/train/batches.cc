#include "artel/train/batches.h"

#include <algorithm>

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

}  // namespace artel
