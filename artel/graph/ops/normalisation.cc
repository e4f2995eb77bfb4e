#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

void check_vectors(const InferContext& context, int first, int last, int64_t width) {
  for (int i = first; i <= last; ++i)
    context.check(context.shape(i) == Shape{width}, "input {} has shape {}, expected [{}]", i,
                  to_string(context.shape(i)), width);
}

void check_image_or_rows(const InferContext& context) {
  const int rank = context.shape(0).rank();
  context.check(rank == 4 || rank == 2,
                "got input {}, expected [batch, channels] or [batch, channels, height, width]",
                to_string(context.shape(0)));
}

// Inputs: x, scale, shift and, with "residual", a tensor added before the optional ReLU.
// Outputs: y, the mean, 1 / deviation, and the unbiased variance of each channel.
std::vector<TensorType> infer_batch_norm(const InferContext& context) {
  context.check_inputs(3, 4);
  check_image_or_rows(context);
  const int64_t channels = context.shape(0)[1];
  check_vectors(context, 1, 2, channels);
  if (context.inputs() == 4)
    context.check(context.shape(3) == context.shape(0), "got a residual {}, expected {}",
                  to_string(context.shape(3)), to_string(context.shape(0)));
  const TensorType vector = {DType::f32, {channels}};
  return {context.type(0), vector, vector, vector};
}

std::vector<Value> batch_norm_gradient(GradientContext& context) {
  const bool residual = context.inputs() == 4;
  std::vector<Value> inputs = {context.gradient(), context.input(0),  context.input(1),
                               context.input(2),   context.output(1), context.output(2)};
  if (residual && context.attributes().flag("relu")) inputs.push_back(context.output(0));
  Attributes attributes = context.attributes();
  attributes.set("residual", int64_t{residual});
  std::vector<Value> results =
      context.graph().add("batch_norm_backward", std::move(inputs), std::move(attributes));
  return results;
}

// Inputs: dy, x, scale, shift, mean, 1 / deviation and, with both "relu" and "residual", y (without
// a residual it is cheaper to compute the mask again). Outputs: dx, dscale, dshift and, with
// "residual", the gradient of the residual.
std::vector<TensorType> infer_batch_norm_backward(const InferContext& context) {
  std::vector<TensorType> types = {context.type(1), context.type(2), context.type(2)};
  if (context.attributes().flag("residual")) types.push_back(context.type(1));
  return types;
}

std::vector<TensorType> infer_inference(const InferContext& context) {
  context.check_inputs(5, 5);
  check_image_or_rows(context);
  check_vectors(context, 1, 4, context.shape(0)[1]);
  return {context.type(0)};
}

// Gradient with fixed statistics (a frozen layer in the middle of a trained network).
std::vector<Value> inference_gradient(GradientContext& context) {
  const Value x = context.input(0);
  Value dy = context.gradient();
  if (context.attributes().flag("relu"))
    dy = context.graph().add_one("relu_grad", {dy, context.output()});
  const Shape row = x.shape().rank() == 4 ? Shape{x.shape()[1], 1, 1} : Shape{x.shape()[1]};
  const Value inverse =
      unary("rsqrt", add_scalar(context.input(4), context.attributes().number("epsilon")));
  const std::vector<int64_t> axes =
      x.shape().rank() == 4 ? std::vector<int64_t>{0, 2, 3} : std::vector<int64_t>{0};
  std::vector<Value> results(5);
  if (context.needs(0)) results[0] = mul(dy, reshape(mul(context.input(1), inverse), row));
  if (context.needs(1)) {
    const Value centred = sub(x, reshape(context.input(3), row));
    results[1] = mul(sum(mul(dy, centred), axes), inverse);
  }
  if (context.needs(2)) results[2] = sum(dy, axes);
  return results;
}

TensorType rows_type(const InferContext& context) {
  const Shape& rows = context.shape(0);
  const int64_t width = rows.back();
  return {DType::f32, {width ? rows.elements() / width : 0}};
}

std::vector<TensorType> infer_layer_norm(const InferContext& context) {
  context.check_inputs(3, 3);
  context.check(context.shape(0).rank() >= 1, "got a scalar, expected [..., width]");
  check_vectors(context, 1, 2, context.shape(0).back());
  return {context.type(0), rows_type(context), rows_type(context)};
}

std::vector<TensorType> infer_rms_norm(const InferContext& context) {
  context.check_inputs(2, 2);
  context.check(context.shape(0).rank() >= 1, "got a scalar, expected [..., width]");
  check_vectors(context, 1, 1, context.shape(0).back());
  return {context.type(0), rows_type(context)};
}

std::vector<Value> layer_norm_gradient(GradientContext& context) {
  return context.graph().add("layer_norm_backward",
                             {context.gradient(), context.input(0), context.input(1),
                              context.output(1), context.output(2)});
}

std::vector<Value> rms_norm_gradient(GradientContext& context) {
  return context.graph().add("rms_norm_backward", {context.gradient(), context.input(0),
                                                   context.input(1), context.output(1)});
}

}  // namespace

std::vector<OpDefinition> normalisation_ops() {
  const auto vectors = [](size_t count) {
    return [count](const InferContext& context) {
      std::vector<TensorType> types = {context.type(1)};
      types.resize(1 + count, context.type(2));
      return types;
    };
  };
  return {{.name = "batch_norm",
           .infer = infer_batch_norm,
           .gradient = batch_norm_gradient,
           .applies = {"relu"}},
          {"batch_norm_backward", infer_batch_norm_backward, nullptr, nullptr},
          {.name = "batch_norm_inference",
           .infer = infer_inference,
           .gradient = inference_gradient,
           .applies = {"relu"}},
          {"layer_norm", infer_layer_norm, layer_norm_gradient, nullptr},
          {"layer_norm_backward", vectors(2), nullptr, nullptr},
          {"rms_norm", infer_rms_norm, rms_norm_gradient, nullptr},
          {"rms_norm_backward", vectors(1), nullptr, nullptr}};
}

Value batch_norm(Value x, Value scale, Value shift, Value running_mean, Value running_variance,
                 BatchNormOptions options) {
  Graph& graph = x.graph();
  const std::vector<Value> results =
      graph.add("batch_norm", {x, scale, shift}, {{"epsilon", options.epsilon}});
  graph.update_state(running_mean, results[1], options.momentum);
  graph.update_state(running_variance, results[3], options.momentum);
  return results[0];
}

Value batch_norm_inference(Value x, Value scale, Value shift, Value mean, Value variance,
                           double epsilon) {
  return x.graph().add_one("batch_norm_inference", {x, scale, shift, mean, variance},
                           {{"epsilon", epsilon}});
}

Value layer_norm(Value x, Value scale, Value shift, double epsilon) {
  return x.graph().add_one("layer_norm", {x, scale, shift}, {{"epsilon", epsilon}});
}

Value rms_norm(Value x, Value scale, double epsilon) {
  return x.graph().add_one("rms_norm", {x, scale}, {{"epsilon", epsilon}});
}

}  // namespace artel
