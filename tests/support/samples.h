// Reading single samples of a data set in tests.
#pragma once

#include <vector>

#include "artel/data/dataset.h"

namespace artel::data {

template <typename X, typename Y>
struct Sample {
  std::vector<X> x;
  std::vector<Y> y;
};

template <typename X = float, typename Y = int32_t>
Sample<X, Y> sample(const Dataset& set, int64_t index) {
  Sample<X, Y> result;
  result.x.resize(set.layout().input_bytes() / sizeof(X));
  result.y.resize(set.layout().target_bytes() / sizeof(Y));
  set.read(index, std::as_writable_bytes(std::span(result.x)),
           std::as_writable_bytes(std::span(result.y)));
  return result;
}

}  // namespace artel::data
