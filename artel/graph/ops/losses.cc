// Losses that are compositions of other ops; element-wise chains in them are fused when compiled.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/graph/ops.h"

namespace artel {
namespace {

Value similarity(Value a, Value b, double epsilon) {
  const auto norm = [&](Value x) {
    return clamp_min(unary("sqrt", sum(unary("square", x), {-1}, true)), epsilon);
  };
  return sum(mul(div(a, norm(a)), div(b, norm(b))), {-1});
}

}  // namespace

Value mean_squared_error(Value prediction, Value target) {
  return mean(unary("square", sub(prediction, target)));
}

Value l1_loss(Value prediction, Value target) {
  return mean(unary("abs", sub(prediction, target)));
}

// 0.5 d^2 / beta below beta, d - 0.5 beta above: with m = min(d, beta) both are m (d - m / 2) /
// beta.
Value smooth_l1_loss(Value prediction, Value target, double beta) {
  const Value distance = unary("abs", sub(prediction, target));
  const Value near = clamp_max(distance, beta);
  return mean(mul(near, mul_scalar(sub(distance, mul_scalar(near, 0.5)), 1 / beta)));
}

// softplus(x) - x t: -t log(s) - (1 - t) log(1 - s) with s = sigmoid(x), without overflow.
Value binary_cross_entropy(Value logits, Value target) {
  return mean(sub(unary("softplus", logits), mul(logits, target)));
}

Value kl_divergence(Value log_probabilities, Value target) {
  const Value log_target = unary("log", clamp_min(target, 1e-30));
  const auto rows = static_cast<double>(std::max<int64_t>(1, target.shape()[0]));
  return mul_scalar(sum(mul(target, sub(log_target, log_probabilities))), 1 / rows);
}

Value cosine_similarity(Value a, Value b, double epsilon) { return similarity(a, b, epsilon); }

Value cosine_embedding_loss(Value a, Value b, Value target, double margin) {
  const Value cosine = similarity(a, b, 1e-8);
  const Value similar = add_scalar(mul_scalar(cosine, -1), 1);
  const Value different = relu(add_scalar(cosine, -margin));
  return mean(select(relu(target), similar, different));
}

Value contrastive_loss(Value a, Value b, double temperature) {
  const auto unit = [](Value x) {
    return div(x, clamp_min(unary("sqrt", sum(unary("square", x), {-1}, true)), 1e-8));
  };
  Graph& graph = a.graph();
  const int64_t rows = a.shape()[0];
  std::vector<int32_t> own(static_cast<size_t>(rows));
  std::iota(own.begin(), own.end(), 0);
  const Value labels = graph.constant("own_row", Tensor::from<int32_t>({rows}, own));
  const Value unit_a = unit(a), unit_b = unit(b);
  const auto direction = [&](Value from, Value to) {
    const Value logits = mul_scalar(matmul(from, to, {.transpose_b = true}), 1 / temperature);
    return cross_entropy(logits, labels);
  };
  return mul_scalar(add(direction(unit_a, unit_b), direction(unit_b, unit_a)), 0.5);
}

}  // namespace artel
