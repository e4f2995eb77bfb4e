#include <algorithm>

#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/ops/shared.h"

namespace artel {
namespace {

std::vector<TensorType> infer_reduce(const InferContext& context) {
  context.check_inputs(1, 1);
  const Shape& x = context.shape(0);
  const std::vector<int64_t>& axes = context.attributes().integers("axes");
  const bool keep = context.attributes().flag("keep");
  std::vector<bool> reduced(x.rank(), false);
  for (const int64_t axis : axes)
    reduced[static_cast<size_t>(normalise_axis(context, axis, x.rank()))] = true;
  std::vector<int64_t> extents;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[axis])
      extents.push_back(x[axis]);
    else if (keep)
      extents.push_back(1);
  }
  return {{DType::f32, Shape(std::move(extents))}};
}

// The shape of the result with reduced axes kept as 1, so that it broadcasts against the input.
Shape kept_shape(GradientContext& context) {
  Shape shape = context.input(0).shape();
  for (const int64_t axis : context.attributes().integers("axes"))
    shape[static_cast<int>(axis < 0 ? axis + shape.rank() : axis)] = 1;
  return shape;
}

std::vector<Value> sum_gradient(GradientContext& context) {
  const Value kept = reshape(context.gradient(), kept_shape(context));
  const Shape& shape = context.input(0).shape();
  return {kept.shape() == shape ? kept : broadcast_to(kept, shape)};
}

std::vector<Value> mean_gradient(GradientContext& context) {
  const auto all = static_cast<double>(context.input(0).shape().elements());
  const auto left = static_cast<double>(std::max<int64_t>(1, context.output().shape().elements()));
  const Value kept =
      reshape(mul_scalar(context.gradient(), left / std::max(all, 1.0)), kept_shape(context));
  const Shape& shape = context.input(0).shape();
  return {kept.shape() == shape ? kept : broadcast_to(kept, shape)};
}

// The gradient goes to the elements equal to the extreme, shared equally among ties.
std::vector<Value> extreme_gradient(GradientContext& context) {
  const Shape kept = kept_shape(context);
  const Value chosen = equal(context.input(0), reshape(context.output(), kept));
  const std::vector<int64_t>& axes = context.attributes().integers("axes");
  const Value count = axes.empty() ? chosen : sum(chosen, axes, true);
  return {mul(chosen, div(reshape(context.gradient(), kept), count))};
}

}  // namespace

Value sum_to(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int extra = x.shape().rank() - shape.rank();
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.shape().rank(); ++axis)
    if (axis < extra || (shape[axis - extra] == 1 && x.shape()[axis] != 1)) axes.push_back(axis);
  return reshape(axes.empty() ? x : sum(x, axes), shape);
}

std::vector<OpDefinition> reduction_ops() {
  return {{"reduce_sum", infer_reduce, sum_gradient, nullptr},
          {"reduce_mean", infer_reduce, mean_gradient, nullptr},
          {"reduce_max", infer_reduce, extreme_gradient, nullptr},
          {"reduce_min", infer_reduce, extreme_gradient, nullptr}};
}

Value reduce(Reduction reduction, Value x, std::vector<int64_t> axes, bool keep) {
  static constexpr const char* kNames[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
  if (axes.empty())
    for (int axis = 0; axis < x.shape().rank(); ++axis) axes.push_back(axis);
  return x.graph().add_one(kNames[static_cast<int>(reduction)], {x},
                           {{"axes", std::move(axes)}, {"keep", int64_t{keep}}});
}

Value sum(Value x, std::vector<int64_t> axes, bool keep) {
  return reduce(Reduction::sum, x, std::move(axes), keep);
}

Value mean(Value x, std::vector<int64_t> axes, bool keep) {
  return reduce(Reduction::mean, x, std::move(axes), keep);
}

}  // namespace artel
