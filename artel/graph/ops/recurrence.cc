// Recurrent cells over whole sequences. The part of the gates that comes from the inputs is a dense
// layer before the node, one product for all positions; the node adds the part that comes from the
// position before, which is why it exists.
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

// Inputs: the projected inputs [batch, positions, gates * units], the weights of the state [gates *
// units, units], with "bias" their bias, and optionally a mask [batch, positions]. Outputs: the
// state at each position, the gates after their activations, and further values for the gradient:
// the cells of an LSTM, or the state's part of the candidate of a GRU.
std::vector<TensorType> infer_recurrence(const InferContext& context, int64_t gates) {
  const int given = context.attributes().flag("bias") ? 3 : 2;
  context.check_inputs(given, given + 1);
  const Shape &x = context.shape(0), &weight = context.shape(1);
  context.check(weight.rank() == 2 && weight[0] == gates * weight[1],
                "got weights {}, expected [{} * units, units]", to_string(weight), gates);
  context.check(x.rank() == 3 && x[2] == weight[0], "got {}, expected [batch, positions, {}]",
                to_string(x), weight[0]);
  if (given == 3)
    context.check(context.shape(2) == Shape{weight[0]}, "got a bias {}, expected [{}]",
                  to_string(context.shape(2)), weight[0]);
  if (context.inputs() > given)
    context.check(context.shape(given) == Shape{x[0], x[1]}, "got a mask {}, expected [{}, {}]",
                  to_string(context.shape(given)), x[0], x[1]);
  const TensorType states = {DType::f32, {x[0], x[1], weight[1]}};
  return {states, context.type(0), states};
}

// Inputs: dy, the weights, the outputs of the forward op, and optionally the mask. Outputs: the
// gradient of the projected inputs and, for a GRU, of the state's part.
std::vector<TensorType> infer_backward(const InferContext& context, size_t outputs) {
  return std::vector<TensorType>(outputs, context.type(3));
}

double recurrence_flops(const Shape& gates, const Shape& weight) {
  return 2.0 * static_cast<double>(gates.elements()) * static_cast<double>(weight[1]);
}

// The state before each position: zeros before the first.
Value states_before(Value y, bool reverse) {
  const int64_t positions = y.shape()[1];
  if (positions <= 1) return mul_scalar(y, 0);
  return reverse ? pad(slice(y, 1, 1, positions), 1, 0, 1)
                 : pad(slice(y, 1, 0, positions - 1), 1, 1, 0);
}

std::vector<Value> recurrence_gradient(GradientContext& context, std::string_view backward_op) {
  const bool bias = context.attributes().flag("bias");
  const int mask = bias ? 3 : 2;
  std::vector<Value> inputs = {context.gradient(), context.input(1), context.output(0),
                               context.output(1), context.output(2)};
  if (context.inputs() > mask) inputs.push_back(context.input(mask));
  const std::vector<Value> backward = context.graph().add(
      backward_op, std::move(inputs), {{"reverse", context.attributes().integer("reverse")}});
  const Value hidden = backward.back();
  std::vector<Value> results(static_cast<size_t>(context.inputs()));
  results[0] = backward.front();
  if (context.needs(1)) {
    const Value before = states_before(context.output(0), context.attributes().flag("reverse"));
    results[1] = matmul(reshape(hidden, {-1, hidden.shape()[2]}),
                        reshape(before, {-1, before.shape()[2]}), {.transpose_a = true});
  }
  if (bias && context.needs(2)) results[2] = context.graph().add_one("column_sum", {hidden});
  return results;
}

std::vector<OpDefinition> cell_ops(std::string name, int64_t gates, size_t gradients) {
  const std::string backward = name + "_backward";
  return {{name, [gates](const InferContext& context) { return infer_recurrence(context, gates); },
           [backward](GradientContext& context) { return recurrence_gradient(context, backward); },
           [](const InferContext& context) {
             return recurrence_flops(context.shape(0), context.shape(1));
           },
           [](const Attributes& attributes, int input) {
             return input == (attributes.flag("bias") ? 3 : 2);
           }},
          {backward,
           [gradients](const InferContext& context) { return infer_backward(context, gradients); },
           nullptr,
           [](const InferContext& context) {
             return recurrence_flops(context.shape(3), context.shape(1));
           },
           [](const Attributes&, int input) { return input == 5; }}};
}

Value add_recurrence(std::string_view op, Value projected, Value weight,
                     const RecurrenceOptions& options) {
  std::vector<Value> inputs = {projected, weight};
  if (options.bias) inputs.push_back(options.bias);
  if (options.mask) inputs.push_back(options.mask);
  return projected.graph().add_one(
      op, std::move(inputs),
      {{"bias", int64_t{static_cast<bool>(options.bias)}}, {"reverse", int64_t{options.reverse}}});
}

}  // namespace

std::vector<OpDefinition> recurrence_ops() {
  std::vector<OpDefinition> all = cell_ops("lstm", 4, 1);
  for (OpDefinition& op : cell_ops("gru", 3, 2)) all.push_back(std::move(op));
  return all;
}

Value lstm(Value projected, Value weight, const RecurrenceOptions& options) {
  return add_recurrence("lstm", projected, weight, options);
}

Value gru(Value projected, Value weight, const RecurrenceOptions& options) {
  return add_recurrence("gru", projected, weight, options);
}

}  // namespace artel
