// Softmax and cross-entropy; the other losses are compositions of element-wise ops and sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "artel/base/error.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// The logarithm of the sum of exponentials: largest + rest.
struct LogSum {
  double largest, rest = 0;
};

LogSum log_sum(const double* row, size_t columns) {
  const double largest = *std::max_element(row, row + columns);
  if (std::isinf(largest)) return {largest};
  double sum = 0;
  for (size_t c = 0; c < columns; ++c) sum += std::exp(row[c] - largest);
  return {largest, std::log(sum)};
}

// Calls body(first place, columns) for each row.
template <typename Body>
void for_each_row(const Shape& shape, const Body& body) {
  const Rows all = rows_of(shape);
  for (int64_t row = 0; row < all.rows; ++row)
    body(static_cast<size_t>(row * all.columns), static_cast<size_t>(all.columns));
}

Array log_softmax(const Array& x) {
  Array y = x;
  for_each_row(x.shape, [&](size_t first, size_t columns) {
    const auto [largest, rest] = log_sum(&x.data[first], columns);
    for (size_t i = first; i < first + columns; ++i) y.data[i] = y.data[i] - largest - rest;
  });
  return y;
}

Array softmax(const Array& x) {
  Array y = log_softmax(x);
  for (double& value : y.data) value = std::exp(value);
  return y;
}

// dx = y (dy - sum(y dy)).
Array softmax_gradient(const Array& dy, const Array& y) {
  Array dx = zeros(y.shape);
  for_each_row(y.shape, [&](size_t first, size_t columns) {
    double mean = 0;
    for (size_t i = first; i < first + columns; ++i) mean += y.data[i] * dy.data[i];
    for (size_t i = first; i < first + columns; ++i) dx.data[i] = y.data[i] * (dy.data[i] - mean);
  });
  return dx;
}

// dx = dy - exp(y) sum(dy).
Array log_softmax_gradient(const Array& dy, const Array& y) {
  Array dx = zeros(y.shape);
  for_each_row(y.shape, [&](size_t first, size_t columns) {
    double sum = 0;
    for (size_t i = first; i < first + columns; ++i) sum += dy.data[i];
    for (size_t i = first; i < first + columns; ++i)
      dx.data[i] = dy.data[i] - std::exp(y.data[i]) * sum;
  });
  return dx;
}

// The targets of a cross-entropy as PyTorch defines it: the loss is the sum over all elements of
// weight[class] * target * -log(probability), divided by `divisor`.
struct Targets {
  Array coefficients;  // weight * target, [rows, classes]
  double weight = 0;   // of the labels, or the number of rows with probabilities
  double divisor = 0;  // the same, or the number of rows
};

// The inputs from `first` on are logits, labels or probabilities, and perhaps class weights.
Targets targets_of(const Call& call, int first) {
  const Array &logits = call.in(first), &target = call.in(first + 1);
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const double smoothing = call.attributes().number("label_smoothing");
  const bool labels = call.is_integer(first + 1);
  const auto weight = [&](int64_t c) {
    return call.count() > first + 2 ? call.in(first + 2).data[static_cast<size_t>(c)] : 1.0;
  };
  Targets result = {zeros(logits.shape)};
  for (int64_t row = 0; row < rows; ++row) {
    const auto label = labels ? static_cast<int64_t>(target.data[static_cast<size_t>(row)]) : -1;
    if (labels && label == call.attributes().integer("ignore_index")) continue;
    require(!labels || (label >= 0 && label < classes), ErrorKind::invalid_argument,
            "[reference] cross_entropy: got the label {}, expected 0 to {}", label, classes - 1);
    result.weight += labels ? weight(label) : 1;
    for (int64_t c = 0; c < classes; ++c) {
      const auto place = static_cast<size_t>(row * classes + c);
      const double wanted = labels ? (c == label ? 1.0 : 0.0) : target.data[place];
      result.coefficients.data[place] =
          weight(c) * ((1 - smoothing) * wanted + smoothing / static_cast<double>(classes));
    }
  }
  result.divisor = call.flag("over_rows") ? static_cast<double>(rows) : result.weight;
  return result;
}

// Results: the loss, NaN if no row counts; the logarithm of each row's sum of exponentials, in two
// parts; the mean weight of the rows.
Arrays cross_entropy(const Call& call) {
  const Array& logits = call.in(0);
  const Targets targets = targets_of(call, 0);
  const Array log_probabilities = log_softmax(logits);
  double sum = 0;
  for (size_t i = 0; i < logits.data.size(); ++i)
    if (targets.coefficients.data[i] != 0)
      sum -= targets.coefficients.data[i] * log_probabilities.data[i];
  Array log_sums = {call.out_shape(1), {}};
  for_each_row(logits.shape, [&](size_t first, size_t columns) {
    const auto [largest, rest] = log_sum(&logits.data[first], columns);
    log_sums.data.insert(log_sums.data.end(), {largest, rest});
  });
  const double loss =
      targets.divisor > 0 ? sum / targets.divisor : std::numeric_limits<double>::quiet_NaN();
  const double mean_weight = targets.weight / static_cast<double>(logits.shape[0]);
  return {{call.out_shape(), {loss}}, log_sums, {call.out_shape(2), {mean_weight}}};
}

// (probability * sum of the row's coefficients - coefficient) / divisor; 0 if no row counts.
Array logits_gradient(const Call& call, int first, double dloss) {
  const Array& logits = call.in(first);
  const Targets targets = targets_of(call, first);
  const Array probabilities = softmax(logits);
  Array dx = zeros(logits.shape);
  if (!(targets.divisor > 0)) return dx;
  for_each_row(logits.shape, [&](size_t begin, size_t columns) {
    double total = 0;
    for (size_t i = begin; i < begin + columns; ++i) total += targets.coefficients.data[i];
    for (size_t i = begin; i < begin + columns; ++i) {
      const double expected = call.disturbance.apply(probabilities.data[i] * total);
      dx.data[i] = (expected - targets.coefficients.data[i]) * dloss / targets.divisor;
    }
  });
  return dx;
}

// For target probabilities: -weight * (1 - smoothing) * log(probability) / divisor.
Array target_gradient(const Call& call, double dloss) {
  Array dt = log_softmax(call.in(0));
  const double factor =
      (call.attributes().number("label_smoothing") - 1) * dloss / static_cast<double>(dt.shape[0]);
  for (size_t i = 0; i < dt.data.size(); ++i)
    dt.data[i] *= factor * (call.count() > 2 ? call.in(2).data[i % call.in(2).data.size()] : 1);
  return dt;
}

// Class weights are settings: they get no gradient.
Arrays cross_entropy_gradient(const Call& call) {
  Arrays results(call.inputs.size());
  results[0] = logits_gradient(call, 0, call.dy().data[0]);
  if (!call.is_integer(1)) results[1] = target_gradient(call, call.dy().data[0]);
  return results;
}

// Inputs: the gradient of the loss, the logarithms, then those of cross_entropy.
Arrays cross_entropy_backward(const Call& call) {
  return {logits_gradient(call, 2, call.in(0).data[0])};
}

}  // namespace

std::vector<Rule> loss_rules() {
  return {
      {"softmax", [](const Call& call) -> Arrays { return {softmax(call.in(0))}; },
       [](const Call& call) -> Arrays { return {softmax_gradient(call.dy(), call.out())}; }},
      {"log_softmax", [](const Call& call) -> Arrays { return {log_softmax(call.in(0))}; },
       [](const Call& call) -> Arrays { return {log_softmax_gradient(call.dy(), call.out())}; }},
      {"softmax_backward",
       [](const Call& call) -> Arrays { return {softmax_gradient(call.in(0), call.in(1))}; }},
      {"log_softmax_backward",
       [](const Call& call) -> Arrays { return {log_softmax_gradient(call.in(0), call.in(1))}; }},
      {"cross_entropy", cross_entropy, cross_entropy_gradient, true},
      {"cross_entropy_backward", cross_entropy_backward}};
}

}  // namespace artel::reference
