#include "artel/predict/batches.h"

namespace artel {

TensorType batch_of(const TensorType& sample, int64_t samples) {
  std::vector<int64_t> extents = {samples};
  extents.insert(extents.end(), sample.shape.extents().begin(), sample.shape.extents().end());
  return {sample.dtype, Shape(std::move(extents))};
}

}  // namespace artel
