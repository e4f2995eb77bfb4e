// Losses that are compositions of other ops; element-wise chains in them are fused when compiled.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"
#include "artel/graph/ops.h"

namespace artel {
namespace {

// Rows of x divided by their lengths, which count as `least` at least. The bound is on the squares:
// the root has no slope at zero.
Value unit_rows(Value x, double least) {
  const Value squares = sum(unary("square", x), {-1}, true);
  return div(x, unary("sqrt", clamp_min(squares, least * least)));
}

Value similarity(Value a, Value b, double epsilon) {
  return sum(mul(unit_rows(a, epsilon), unit_rows(b, epsilon)), {-1});
}

// The target in the shape of the prediction: one number for each row stands for a column of them.
// Anything else that differs would be broadcast against the prediction, so it is refused.
Value fitting(Value target, Value prediction, std::string_view loss) {
  const Shape& wanted = prediction.shape();
  if (target.shape().rank() == 1 && wanted == Shape{target.shape()[0], 1})
    return reshape(target, wanted);
  require(
      target.shape() == wanted, ErrorKind::shape,
      "[loss] {}: got targets {} for the network's output {}, expected equal shapes; change the "
      "last layer or the targets",
      loss, to_string(target.shape()), to_string(wanted));
  return target;
}

}  // namespace

Value mean_squared_error(Value prediction, Value target) {
  return mean(unary("square", sub(prediction, fitting(target, prediction, "mse"))));
}

Value l1_loss(Value prediction, Value target) {
  return mean(unary("abs", sub(prediction, fitting(target, prediction, "l1"))));
}

// 0.5 d^2 / beta below beta, d - 0.5 beta above: with m = min(d, beta) both are m (d - m / 2) /
// beta.
Value smooth_l1_loss(Value prediction, Value target, double beta) {
  const Value distance = unary("abs", sub(prediction, fitting(target, prediction, "smooth_l1")));
  const Value near = clamp_max(distance, beta);
  return mean(mul(near, mul_scalar(sub(distance, mul_scalar(near, 0.5)), 1 / beta)));
}

// softplus(x) - x t: -t log(s) - (1 - t) log(1 - s) with s = sigmoid(x), without overflow.
Value binary_cross_entropy(Value logits, Value target) {
  target = fitting(target, logits, "binary_cross_entropy");
  return mean(sub(unary("softplus", logits), mul(logits, target)));
}

Value kl_divergence(Value log_probabilities, Value target) {
  target = fitting(target, log_probabilities, "kl");
  const Value log_target = unary("log", clamp_min(target, 1e-30));
  const auto rows = static_cast<double>(std::max<int64_t>(1, target.shape()[0]));
  return mul_scalar(sum(mul(target, sub(log_target, log_probabilities))), 1 / rows);
}

Value cosine_similarity(Value a, Value b, double epsilon) { return similarity(a, b, epsilon); }

Value cosine_embedding_loss(Value a, Value b, Value target, double margin) {
  const Value cosine = similarity(a, b, 1e-8);
  require(target.shape() == cosine.shape(), ErrorKind::shape,
          "[loss] cosine_embedding: got targets {}, expected {}, one for each pair of rows",
          to_string(target.shape()), to_string(cosine.shape()));
  const Value similar = add_scalar(mul_scalar(cosine, -1), 1);
  const Value different = relu(add_scalar(cosine, -margin));
  return mean(select(relu(target), similar, different));
}

Value contrastive_loss(Value a, Value b, double temperature) {
  Graph& graph = a.graph();
  const int64_t rows = a.shape()[0];
  std::vector<int32_t> own(static_cast<size_t>(rows));
  std::iota(own.begin(), own.end(), 0);
  const Value labels = graph.constant("own_row", Tensor::from<int32_t>({rows}, own));
  const Value unit_a = unit_rows(a, 1e-8), unit_b = unit_rows(b, 1e-8);
  const auto direction = [&](Value from, Value to) {
    const Value logits = mul_scalar(matmul(from, to, {.transpose_b = true}), 1 / temperature);
    return cross_entropy(logits, labels);
  };
  return mul_scalar(add(direction(unit_a, unit_b), direction(unit_b, unit_a)), 0.5);
}

}  // namespace artel
