// Scores of classes read as answers.
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// Whether class a of a row comes before class b: by a larger score, or as the first of equal ones.
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

}  // namespace

std::vector<Rule> class_rules() { return {{"argmax", argmax}, {"count_top", count_top}}; }

}  // namespace artel::reference
