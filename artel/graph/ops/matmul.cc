#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

// Rows and columns of a matrix operand, after transposition.
std::pair<int64_t, int64_t> matrix(const Shape& shape, bool transposed) {
  const int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  return transposed ? std::pair{columns, rows} : std::pair{rows, columns};
}

std::vector<TensorType> infer_matmul(const InferContext& context) {
  context.check_inputs(2, 2);
  const Shape &a = context.shape(0), &b = context.shape(1);
  const Attributes& attributes = context.attributes();
  context.check(a.rank() >= 2 && b.rank() >= 2, "got shapes {} and {}, expected rank 2 or more",
                to_string(a), to_string(b));
  const auto [m, k] = matrix(a, attributes.flag("transpose_a"));
  const auto [k2, n] = matrix(b, attributes.flag("transpose_b"));
  context.check(k == k2, "got {} and {}: inner extents {} and {} differ", to_string(a),
                to_string(b), k, k2);
  bool same_batch = b.rank() == 2 || a.rank() == b.rank();
  for (int axis = 0; same_batch && b.rank() > 2 && axis < a.rank() - 2; ++axis)
    same_batch = a[axis] == b[axis];
  context.check(same_batch, "got {} and {}: the leading extents differ", to_string(a),
                to_string(b));
  context.check(b.rank() > 2 || a.rank() == 2 || !attributes.flag("transpose_a"),
                "got {} and {}: a stack times one matrix cannot transpose the stack", to_string(a),
                to_string(b));
  Shape result = a;
  result[a.rank() - 2] = m;
  result[a.rank() - 1] = n;
  return {{DType::f32, result}};
}

double matmul_flops(const InferContext& context) {
  const int64_t columns = matrix(context.shape(1), context.attributes().flag("transpose_b")).second;
  return 2.0 * static_cast<double>(context.shape(0).elements()) * static_cast<double>(columns);
}

Value rows_of(Value x) {
  const int64_t columns = x.shape().back();
  return reshape(x, {columns ? x.shape().elements() / columns : 0, columns});
}

// With C = op(A) op(B): dA = dC op(B)^T and dB = op(A)^T dC, each transposed again if the operand
// was.
std::vector<Value> matmul_gradient(GradientContext& context) {
  const Value a = context.input(0), b = context.input(1), dy = context.gradient();
  const bool ta = context.attributes().flag("transpose_a");
  const bool tb = context.attributes().flag("transpose_b");
  const bool one_matrix = b.shape().rank() == 2 && a.shape().rank() > 2;
  std::vector<Value> results(2);
  if (context.needs(0))
    results[0] = ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true})
                    : matmul(dy, b, {.transpose_b = !tb});
  if (context.needs(1)) {
    const Value left = one_matrix ? rows_of(a) : a, right = one_matrix ? rows_of(dy) : dy;
    results[1] = tb ? matmul(right, left, {.transpose_a = true, .transpose_b = ta})
                    : matmul(left, right, {.transpose_a = !ta});
  }
  return results;
}

std::vector<TensorType> infer_dense(const InferContext& context) {
  context.check_inputs(2, 3);
  const Shape &x = context.shape(0), &w = context.shape(1);
  context.check(w.rank() == 2, "got weights {}, expected [out, in]", to_string(w));
  const auto [in, out] = matrix(w, !context.attributes().flag("in_out"));
  context.check(x.rank() >= 2 && x.back() == in,
                "got input {} and weights {}, expected the last extent of the input to be {}",
                to_string(x), to_string(w), in);
  if (context.inputs() == 3)
    context.check(context.shape(2) == Shape{out}, "got bias {}, expected [{}]",
                  to_string(context.shape(2)), out);
  Shape result = x;
  result[x.rank() - 1] = out;
  std::vector<TensorType> types = {{DType::f32, result}};
  if (context.attributes().flag("slope")) types.push_back(types[0]);
  return types;
}

double dense_flops(const InferContext& context) {
  const int64_t out = matrix(context.shape(1), !context.attributes().flag("in_out")).second;
  return 2.0 * static_cast<double>(context.shape(0).elements()) * static_cast<double>(out);
}

std::vector<Value> dense_gradient(GradientContext& context) {
  Value dy = context.gradient();
  const bool has_bias = context.inputs() == 3;
  std::vector<Value> results(context.inputs());
  Graph& graph = context.graph();
  const bool slope = context.attributes().flag("slope");
  const bool gelu = context.attributes().flag("gelu") || context.attributes().flag("gelu_tanh");
  require(slope || !gelu, ErrorKind::internal,
          "[dense] gradient of a fused GELU: got no slope, expected a graph fused for training");
  if (slope || context.attributes().flag("relu")) {
    // One pass masks or scales dy and sums the columns for the bias.
    const auto both = graph.add("bias_backward", {dy, context.output(slope ? 1 : 0)},
                                {{"slope", int64_t{slope}}});
    dy = both[0];
    if (has_bias) results[2] = both[1];
  } else if (has_bias && context.needs(2)) {
    results[2] = graph.add_one("column_sum", {dy});
  }
  const bool in_out = context.attributes().flag("in_out");
  if (context.needs(0)) results[0] = matmul(dy, context.input(1), {.transpose_b = in_out});
  if (context.needs(1)) {
    const Value x_rows = rows_of(context.input(0)), dy_rows = rows_of(dy);
    results[1] = in_out ? matmul(x_rows, dy_rows, {.transpose_a = true})
                        : matmul(dy_rows, x_rows, {.transpose_a = true});
  }
  return results;
}

Shape channels_of(const Shape& shape, bool channels_first) {
  return {channels_first ? shape[1] : shape.back()};
}

}  // namespace

std::vector<OpDefinition> matmul_ops() {
  // bias_backward(dy, y): dy where y > 0 (the gradient through a ReLU), or with `slope` dy times
  // the second operand, and its sum over all but the channel axis. column_sum(dy): only the sum.
  // The channel axis is 1 with `channels_first`, else last.
  const auto infer_sum = [](const InferContext& context) -> std::vector<TensorType> {
    return {
        {DType::f32, channels_of(context.shape(0), context.attributes().flag("channels_first"))}};
  };
  const auto infer_backward = [](const InferContext& context) -> std::vector<TensorType> {
    return {
        context.type(0),
        {DType::f32, channels_of(context.shape(0), context.attributes().flag("channels_first"))}};
  };
  return {{"matmul", infer_matmul, matmul_gradient, matmul_flops},
          {.name = "dense",
           .infer = infer_dense,
           .gradient = dense_gradient,
           .flops = dense_flops,
           .applies = {"relu", "gelu", "gelu_tanh"},
           .with_quantised =
               [](const std::vector<Value>& inputs, const QuantisedValue& matrix) {
                 return dense(inputs[0], matrix, inputs.size() > 2 ? inputs[2] : Value());
               }},
          {"bias_backward", infer_backward, nullptr, nullptr},
          {"column_sum", infer_sum, nullptr, nullptr}};
}

Value matmul(Value a, Value b, MatmulOptions options) {
  return a.graph().add_one("matmul", {a, b},
                           {{"transpose_a", int64_t{options.transpose_a}},
                            {"transpose_b", int64_t{options.transpose_b}}});
}

Value dense(Value x, Value weight, Value bias, WeightOrder order) {
  std::vector<Value> inputs = {x, weight};
  if (bias) inputs.push_back(bias);
  return x.graph().add_one("dense", std::move(inputs),
                           {{"in_out", int64_t{order == WeightOrder::in_out}}});
}

}  // namespace artel
