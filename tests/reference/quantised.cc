// Matrices of few bits: elements are scale * code, scale * (code - 8) or scale * code + offset, and
// each block of 32 elements of x is rounded to multiples of its largest divided by 127. With 8 bits
// and one scale per row, a block of x is a whole row.
#include <algorithm>
#include <cmath>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

constexpr int64_t kBlock = 32;

// The matrix of a node as numbers.
Array expanded(const Call& call) {
  const Array &codes = call.in(1), &scales = call.in(2);
  const bool eight = call.graph.type(call.node.inputs[1]).dtype == DType::i8;
  const int64_t rows = codes.shape[0], columns = codes.shape[1] * (eight ? 1 : 2);
  const int64_t groups = scales.shape[1], group = columns / groups;
  Array matrix = zeros({rows, columns});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const auto g = static_cast<size_t>(row * groups + c / group);
      double& element = matrix.data[static_cast<size_t>(row * columns + c)];
      if (eight) {
        element = scales.data[g] * codes.data[static_cast<size_t>(row * columns + c)];
        continue;
      }
      const int64_t byte = c / kBlock * (kBlock / 2) + c % (kBlock / 2);
      const auto both = static_cast<int>(codes.data[static_cast<size_t>(row * columns / 2 + byte)]);
      const int code = c % kBlock < kBlock / 2 ? both % 16 : both / 16;
      element = call.flag("offsets") ? scales.data[g] * code + call.in(3).data[g]
                                     : scales.data[g] * (code - 8);
    }
  return matrix;
}

Array rounded(const Array& x, size_t block) {
  Array result = x;
  for (size_t first = 0; first < x.data.size(); first += block) {
    double most = 0;
    for (size_t i = first; i < first + block; ++i) most = std::max(most, std::abs(x.data[i]));
    for (size_t i = first; i < first + block && most > 0; ++i)
      result.data[i] = std::nearbyint(x.data[i] * 127 / most) * most / 127;
  }
  return result;
}

Arrays quantised_dense(const Call& call) {
  const Array matrix = expanded(call);
  const int64_t out = matrix.shape[0], in = matrix.shape[1];
  const bool eight = call.graph.type(call.node.inputs[1]).dtype == DType::i8;
  const bool whole_rows = eight && call.in(2).shape[1] == 1;
  const Array x = rounded(call.in(0), static_cast<size_t>(whole_rows ? in : kBlock));
  Array y = zeros(call.out_shape());
  for (int64_t row = 0; row < rows_of(x.shape).rows; ++row)
    for (int64_t o = 0; o < out; ++o) {
      double& sum = y.data[static_cast<size_t>(row * out + o)];
      if (call.flag("bias")) sum = call.in(call.count() - 1).data[static_cast<size_t>(o)];
      for (int64_t i = 0; i < in; ++i)
        sum += x.data[static_cast<size_t>(row * in + i)] *
               matrix.data[static_cast<size_t>(o * in + i)];
    }
  return {y};
}

Arrays quantised_embedding(const Call& call) {
  const Array matrix = expanded(call);
  const int64_t columns = matrix.shape[1];
  Array y = {call.out_shape(), {}};
  for (const double index : call.in(0).data) {
    const auto row = matrix.data.begin() + static_cast<int64_t>(index) * columns;
    y.data.insert(y.data.end(), row, row + columns);
  }
  return {y};
}

}  // namespace

std::vector<Rule> quantised_rules() {
  return {{"quantised_dense", quantised_dense}, {"quantised_embedding", quantised_embedding}};
}

}  // namespace artel::reference
