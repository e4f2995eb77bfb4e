// Scores of classes read as answers, and exact sums.
#include <cmath>

#include "artel/graph/ops/limbs.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// True if class a of a row comes before class b: by a larger score, or as the first of equal ones.
bool before(const double* row, int64_t a, int64_t b) {
  return row[a] > row[b] || (row[a] == row[b] && a < b);
}

Arrays argmax(const Call& call) {
  const Rows all = rows_of(call.in(0).shape);
  Array result = zeros(call.out_shape());
  for (int64_t row = 0; row < all.rows; ++row) {
    const double* scores = &call.in(0).data[static_cast<size_t>(row * all.columns)];
    int64_t best = 0;
    for (int64_t c = 1; c < all.columns; ++c)
      if (before(scores, c, best)) best = c;
    result.data[static_cast<size_t>(row)] = static_cast<double>(best);
  }
  return {result};
}

Arrays count_top(const Call& call) {
  const Rows all = rows_of(call.in(0).shape);
  Array result = zeros(call.out_shape());
  for (int64_t row = 0; row < all.rows; ++row) {
    const auto label = static_cast<int64_t>(call.in(1).data[static_cast<size_t>(row)]);
    if (label == call.attributes().integer("ignore_index")) continue;
    result.data[1] += 1;
    if (label < 0 || label >= all.columns) continue;
    const double* scores = &call.in(0).data[static_cast<size_t>(row * all.columns)];
    int64_t rank = 0;
    for (int64_t c = 0; c < all.columns; ++c) rank += before(scores, c, label) ? 1 : 0;
    if (rank < call.attributes().integer("k")) result.data[0] += 1;
  }
  return {result};
}

// Cuts each number into limbs from the top, and carries in the end.
Arrays limb_sums(const Call& call) {
  Array result = zeros(call.out_shape());
  const auto unit = [](size_t limb) {
    return std::ldexp(1.0, kLowestLimb + kLimbBits * static_cast<int>(limb));
  };
  for (const double x : call.in(0).data) {
    double rest = call.flag("squares") ? x * x : x;
    for (size_t limb = kLimbs; limb-- > 0;) {
      const double digit = std::nearbyint(rest / unit(limb));
      result.data[limb] += digit;
      rest -= digit * unit(limb);
    }
  }
  const double base = std::ldexp(1.0, kLimbBits);
  for (size_t limb = 0; limb + 1 < kLimbs; ++limb) {
    const double carried = std::floor(result.data[limb] / base + 0.5);
    result.data[limb] -= carried * base;
    result.data[limb + 1] += carried;
  }
  return {result};
}

}  // namespace

std::vector<Rule> class_rules() {
  return {{"argmax", argmax}, {"count_top", count_top}, {"limb_sums", limb_sums}};
}

}  // namespace artel::reference
