// Ops that move or convert elements and compute nothing.
#include <algorithm>
#include <numeric>

#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/ops/shared.h"

namespace artel {
namespace {

std::vector<TensorType> infer_reshape(const InferContext& context) {
  context.check_inputs(1, 1);
  Shape shape(context.attributes().integers("shape"));
  const int64_t elements = context.shape(0).elements();
  int64_t known = 1;
  int unknown = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == -1 && unknown < 0)
      unknown = axis;
    else
      known *= shape[axis];
  }
  if (unknown >= 0 && known > 0 && elements % known == 0) shape[unknown] = elements / known;
  const bool valid = std::all_of(shape.extents().begin(), shape.extents().end(),
                                 [](int64_t extent) { return extent >= 0; });
  context.check(valid && shape.elements() == elements, "cannot reshape {} to {}",
                to_string(context.shape(0)),
                to_string(Shape(context.attributes().integers("shape"))));
  return {{context.type(0).dtype, shape}};
}

std::vector<Value> reshape_gradient(GradientContext& context) {
  return {reshape(context.gradient(), context.input(0).shape())};
}

std::vector<TensorType> infer_transpose(const InferContext& context) {
  context.check_inputs(1, 1);
  const std::vector<int64_t>& order = context.attributes().integers("permutation");
  std::vector<int64_t> sorted = order, expected(context.shape(0).rank());
  std::sort(sorted.begin(), sorted.end());
  std::iota(expected.begin(), expected.end(), int64_t{0});
  context.check(sorted == expected, "got the axes {}, expected a permutation of the axes of {}",
                to_string(Shape(order)), to_string(context.shape(0)));
  Shape shape = context.shape(0);
  for (int axis = 0; axis < shape.rank(); ++axis)
    shape[axis] = context.shape(0)[static_cast<int>(order[axis])];
  return {{context.type(0).dtype, shape}};
}

std::vector<Value> transpose_gradient(GradientContext& context) {
  const std::vector<int64_t>& order = context.attributes().integers("permutation");
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  return {transpose(context.gradient(), inverse)};
}

std::vector<TensorType> infer_concat(const InferContext& context) {
  context.check(context.inputs() > 0, "got no inputs");
  const int64_t axis =
      normalise_axis(context, context.attributes().integer("axis"), context.shape(0).rank());
  TensorType type = context.type(0);
  for (int i = 1; i < context.inputs(); ++i) {
    Shape other = context.shape(i);
    bool fits = other.rank() == type.shape.rank() && context.type(i).dtype == type.dtype;
    for (int a = 0; fits && a < other.rank(); ++a) fits = a == axis || other[a] == type.shape[a];
    context.check(fits, "got {} and {}, expected equal extents except along axis {}",
                  to_string(context.shape(0)), to_string(other), axis);
    type.shape[static_cast<int>(axis)] += other[static_cast<int>(axis)];
  }
  return {type};
}

std::vector<Value> concat_gradient(GradientContext& context) {
  int64_t axis = context.attributes().integer("axis");
  if (axis < 0) axis += context.output().shape().rank();
  std::vector<Value> results(context.inputs());
  int64_t begin = 0;
  for (int i = 0; i < context.inputs(); ++i) {
    const int64_t end = begin + context.input(i).shape()[static_cast<int>(axis)];
    if (context.needs(i)) results[i] = slice(context.gradient(), axis, begin, end);
    begin = end;
  }
  return results;
}

std::vector<TensorType> infer_slice(const InferContext& context) {
  context.check_inputs(1, 1);
  const Attributes& a = context.attributes();
  TensorType type = context.type(0);
  const auto axis = static_cast<int>(normalise_axis(context, a.integer("axis"), type.shape.rank()));
  const int64_t begin = a.integer("begin"), end = a.integer("end");
  context.check(0 <= begin && begin <= end && end <= type.shape[axis],
                "got the range [{}, {}) of axis {} of {}", begin, end, axis, to_string(type.shape));
  type.shape[axis] = end - begin;
  return {type};
}

std::vector<Value> slice_gradient(GradientContext& context) {
  Attributes attributes = context.attributes();
  attributes.set("shape", context.input(0).shape().extents());
  return {context.graph().add_one("slice_backward", {context.gradient()}, std::move(attributes))};
}

std::vector<Value> pad_gradient(GradientContext& context) {
  const Attributes& a = context.attributes();
  return {slice(context.gradient(), a.integer("axis"), a.integer("begin"), a.integer("end"))};
}

std::vector<TensorType> infer_to_shape(const InferContext& context) {
  return {{context.type(0).dtype, Shape(context.attributes().integers("shape"))}};
}

std::vector<TensorType> infer_broadcast_to(const InferContext& context) {
  context.check_inputs(1, 1);
  const Shape target(context.attributes().integers("shape"));
  bool fits = true;
  try {
    fits = broadcast(context.shape(0), target) == target;
  } catch (const Error&) {
    fits = false;
  }
  context.check(fits, "cannot broadcast {} to {}", to_string(context.shape(0)), to_string(target));
  return {{context.type(0).dtype, target}};
}

std::vector<Value> broadcast_gradient(GradientContext& context) {
  return {sum_to(context.gradient(), context.input(0).shape())};
}

std::vector<TensorType> infer_to_f32(const InferContext& context) {
  context.check_inputs(1, 1);
  context.check(context.type(0).dtype == DType::i32, "got {}, expected f32 or i32",
                to_string(context.type(0)));
  return {{DType::f32, context.shape(0)}};
}

bool any_type(const Attributes&, int) { return true; }

}  // namespace

int64_t normalise_axis(const InferContext& context, int64_t axis, int rank) {
  context.check(-rank <= axis && axis < rank, "axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<OpDefinition> shape_ops() {
  return {{"reshape", infer_reshape, reshape_gradient, nullptr, any_type},
          {"transpose", infer_transpose, transpose_gradient, nullptr, any_type},
          {"concat", infer_concat, concat_gradient, nullptr, any_type},
          {"slice", infer_slice, slice_gradient, nullptr, any_type},
          {"to_f32", infer_to_f32, nullptr, nullptr, any_type},
          {"slice_backward", infer_to_shape, pad_gradient, nullptr},  // zero outside the range
          {"broadcast_to", infer_broadcast_to, broadcast_gradient, nullptr}};
}

Value reshape(Value x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return x.graph().add_one("reshape", {x}, {{"shape", shape.extents()}});
}

Value flatten(Value x) {
  const Shape& shape = x.shape();
  return reshape(x, {shape[0], shape[0] ? shape.elements() / shape[0] : -1});
}

Value transpose(Value x, std::vector<int64_t> permutation) {
  return x.graph().add_one("transpose", {x}, {{"permutation", std::move(permutation)}});
}

Value concat(std::vector<Value> parts, int64_t axis) {
  Graph& graph = parts.front().graph();
  return graph.add_one("concat", std::move(parts), {{"axis", axis}});
}

Value slice(Value x, int64_t axis, int64_t begin, int64_t end) {
  return x.graph().add_one("slice", {x}, {{"axis", axis}, {"begin", begin}, {"end", end}});
}

Value pad(Value x, int64_t axis, int64_t before, int64_t after) {
  const auto at = static_cast<int>(axis < 0 ? axis + x.shape().rank() : axis);
  const int64_t end = before + x.shape()[at];
  Shape shape = x.shape();
  shape[at] = end + after;
  return x.graph().add_one(
      "slice_backward", {x},
      {{"axis", int64_t{at}}, {"begin", before}, {"end", end}, {"shape", shape.extents()}});
}

// A node even if nothing changes: a network has the same nodes for every size of batch, or lanes of
// different sizes could not be cut at the same places.
Value broadcast_to(Value x, const Shape& shape) {
  return x.graph().add_one("broadcast_to", {x}, {{"shape", shape.extents()}});
}

}  // namespace artel
