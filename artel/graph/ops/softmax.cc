// Softmax, and the cross-entropy fused with it.
#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

std::vector<TensorType> infer_rows(const InferContext& context) {
  context.check_inputs(1, 1);
  context.check(context.shape(0).rank() >= 1, "got a scalar, expected [..., classes]");
  return {context.type(0)};
}

std::function<std::vector<Value>(GradientContext&)> from_output(const char* op) {
  return [op](GradientContext& context) -> std::vector<Value> {
    return {context.graph().add_one(op, {context.gradient(), context.output()})};
  };
}

std::vector<TensorType> infer_first(const InferContext& context) { return {context.type(0)}; }

// Inputs: logits, labels (i32 [rows]) or target probabilities (f32 [rows, classes]), and optionally
// class weights. With `over_rows`, the loss is divided by the number of rows instead of the weights
// of their labels. Outputs: the loss; for each row the logarithm of the sum of exponentials in two
// parts; the mean weight of the rows.
std::vector<TensorType> infer_cross_entropy(const InferContext& context) {
  context.check_inputs(2, 3);
  const Shape &logits = context.shape(0), &labels = context.shape(1);
  context.check(logits.rank() == 2, "got logits {}, expected [rows, classes]", to_string(logits));
  if (context.type(1).dtype == DType::i32)
    context.check(labels == Shape{logits[0]}, "got labels {} for logits {}, expected [{}]",
                  to_string(labels), to_string(logits), logits[0]);
  else
    context.check(context.type(1).dtype == DType::f32 && labels == logits,
                  "got targets {} for logits {}, expected i32 labels [{}] or f32 probabilities {}",
                  to_string(context.type(1)), to_string(logits), logits[0], to_string(logits));
  if (context.inputs() == 3)
    context.check(context.shape(2) == Shape{logits[1]}, "got class weights {}, expected [{}]",
                  to_string(context.shape(2)), logits[1]);
  return {{DType::f32, Shape{}}, {DType::f32, {logits[0], 2}}, {DType::f32, Shape{}}};
}

std::vector<Value> cross_entropy_gradient(GradientContext& context) {
  require(
      !context.needs(1) && (context.inputs() < 3 || !context.needs(2)), ErrorKind::unsupported,
      "[cross_entropy] targets and class weights have no gradient; make them inputs or constants");
  std::vector<Value> results(context.inputs());
  if (!context.gradient()) return results;  // the weight alone depends on no logits
  std::vector<Value> inputs = {context.gradient(), context.output(1)};
  for (int i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  results[0] =
      context.graph().add_one("cross_entropy_backward", std::move(inputs), context.attributes());
  return results;
}

}  // namespace

std::vector<OpDefinition> softmax_ops() {
  return {{.name = "softmax",
           .infer = infer_rows,
           .gradient = from_output("softmax_backward"),
           .activation = true},
          {.name = "log_softmax",
           .infer = infer_rows,
           .gradient = from_output("log_softmax_backward"),
           .activation = true},
          {"softmax_backward", infer_first, nullptr, nullptr},
          {"log_softmax_backward", infer_first, nullptr, nullptr},
          {"cross_entropy", infer_cross_entropy, cross_entropy_gradient, nullptr,
           [](const Attributes&, int input) { return input == 1; }},
          // Inputs: the gradient of the loss, the saved logarithms, then those of cross_entropy.
          {"cross_entropy_backward",
           [](const InferContext& c) -> std::vector<TensorType> { return {c.type(2)}; }, nullptr,
           nullptr, [](const Attributes&, int input) { return input == 3; }}};
}

Value softmax(Value x) { return unary("softmax", x); }
Value log_softmax(Value x) { return unary("log_softmax", x); }

namespace {

std::vector<Value> add_cross_entropy(Value logits, Value labels, Value weights,
                                     const CrossEntropyOptions& options, bool over_rows) {
  std::vector<Value> inputs = {logits, labels};
  if (weights) inputs.push_back(weights);
  return logits.graph().add("cross_entropy", std::move(inputs),
                            {{"label_smoothing", options.label_smoothing},
                             {"ignore_index", options.ignore_index},
                             {"over_rows", int64_t{over_rows}}});
}

}  // namespace

Value cross_entropy(Value logits, Value labels, Value weights, CrossEntropyOptions options) {
  return add_cross_entropy(logits, labels, weights, options, false).front();
}

WeightedMean weighted_cross_entropy(Value logits, Value labels, Value weights,
                                    CrossEntropyOptions options) {
  const std::vector<Value> outputs = add_cross_entropy(logits, labels, weights, options, true);
  return {outputs[0], outputs[2]};
}

}  // namespace artel
