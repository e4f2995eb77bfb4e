#include "artel/transfer/vector_index.h"

namespace artel::transfer {

bool has_approximate_index() { return false; }

std::unique_ptr<VectorIndex> approximate_index(const Tensor& vectors, const ApproximateOptions&) {
  return exact_index(vectors);
}

}  // namespace artel::transfer
