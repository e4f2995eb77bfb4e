#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

struct Geometry {
  std::array<int64_t, 2> stride, padding, dilation;
  int64_t groups;
};

Geometry geometry(const InferContext& context) {
  const Attributes& a = context.attributes();
  const auto pair = [&](const char* name) {
    const std::vector<int64_t>& v = a.integers(name);
    return std::array<int64_t, 2>{v[0], v[1]};
  };
  const Geometry g = {pair("stride"), pair("padding"), pair("dilation"), a.integer("groups")};
  for (int i = 0; i < 2; ++i)
    context.check(g.stride[i] > 0 && g.dilation[i] > 0 && g.padding[i] >= 0 && g.groups > 0,
                  "stride, dilation and groups must be positive and padding not negative");
  return g;
}

void check_image(const InferContext& context) {
  context.check(context.shape(0).rank() == 4 && context.shape(1).rank() == 4,
                "got input {} and weights {}, expected [batch, channels, height, width] and "
                "[out, in / groups, height, width]",
                to_string(context.shape(0)), to_string(context.shape(1)));
}

void check_bias(const InferContext& context, int64_t channels) {
  if (context.inputs() == 3)
    context.check(context.shape(2) == Shape{channels}, "got bias {}, expected [{}]",
                  to_string(context.shape(2)), channels);
}

std::vector<TensorType> infer_conv(const InferContext& context) {
  context.check_inputs(2, 3);
  check_image(context);
  const Geometry g = geometry(context);
  const Shape &x = context.shape(0), &w = context.shape(1);
  context.check(x[1] == w[1] * g.groups,
                "got {} input channels, expected {} ({} in each of {} groups)", x[1],
                w[1] * g.groups, w[1], g.groups);
  context.check(w[0] % g.groups == 0, "got {} output channels, not a multiple of {} groups", w[0],
                g.groups);
  check_bias(context, w[0]);
  Shape y = {x[0], w[0], 0, 0};
  for (int i = 0; i < 2; ++i) {
    const int64_t room = x[2 + i] + 2 * g.padding[i] - g.dilation[i] * (w[2 + i] - 1) - 1;
    context.check(room >= 0, "the kernel {}x{} does not fit into the input {} with this padding",
                  w[2], w[3], to_string(x));
    y[2 + i] = room / g.stride[i] + 1;
  }
  return {{DType::f32, y}};
}

std::vector<TensorType> infer_transposed(const InferContext& context) {
  context.check_inputs(2, 3);
  check_image(context);
  const Geometry g = geometry(context);
  const std::vector<int64_t>& extra = context.attributes().integers("output_padding");
  const Shape &x = context.shape(0), &w = context.shape(1);
  context.check(x[1] == w[0],
                "got {} input channels and weights {}, expected [{}, out / groups, height, width]",
                x[1], to_string(w), x[1]);
  context.check(x[1] % g.groups == 0, "got {} input channels, not a multiple of {} groups", x[1],
                g.groups);
  check_bias(context, w[1] * g.groups);
  Shape y = {x[0], w[1] * g.groups, 0, 0};
  for (int i = 0; i < 2; ++i) {
    context.check(extra[i] >= 0 && extra[i] < std::max(g.stride[i], g.dilation[i]),
                  "output padding {} must be smaller than the stride or the dilation", extra[i]);
    y[2 + i] = (x[2 + i] - 1) * g.stride[i] - 2 * g.padding[i] + g.dilation[i] * (w[2 + i] - 1) +
               extra[i] + 1;
    context.check(y[2 + i] > 0, "the padding leaves nothing of the input {}", to_string(x));
  }
  return {{DType::f32, y}};
}

// The shape is that of the tensor whose gradient it is, kept as an attribute.
std::vector<TensorType> infer_like(const InferContext& context) {
  return {{DType::f32, Shape(context.attributes().integers("shape"))}};
}

// Both gradients and the transposed convolution do as many operations as the convolution between
// the smaller image (the output side) and the weights.
double flops_of(const Shape& output_side, const Shape& weights) {
  return 2.0 * static_cast<double>(output_side.elements()) *
         static_cast<double>(weights[1] * weights[2] * weights[3]);
}

double conv_forward_flops(const InferContext& context) {
  const Shape y = infer_conv(context)[0].shape;
  return flops_of(y, context.shape(1));
}

Attributes like(const Attributes& attributes, const Shape& shape) {
  Attributes result = attributes;
  result.set("shape", shape.extents());
  result.set("relu", int64_t{0});
  return result;
}

std::vector<Value> conv_gradient(GradientContext& context) {
  Graph& graph = context.graph();
  Value dy = context.gradient();
  std::vector<Value> results(context.inputs());
  const bool has_bias = context.inputs() == 3;
  if (context.attributes().flag("relu")) {
    const auto both =
        graph.add("bias_backward", {dy, context.output()}, {{"channels_first", int64_t{1}}});
    dy = both[0];
    if (has_bias) results[2] = both[1];
  } else if (has_bias && context.needs(2)) {
    results[2] = graph.add_one("column_sum", {dy}, {{"channels_first", int64_t{1}}});
  }
  if (context.needs(0))
    results[0] = graph.add_one("conv2d_backward_data", {dy, context.input(1)},
                               like(context.attributes(), context.input(0).shape()));
  if (context.needs(1))
    results[1] = graph.add_one("conv2d_backward_weights", {context.input(0), dy},
                               like(context.attributes(), context.input(1).shape()));
  return results;
}

// The transposed convolution is the data gradient of a convolution, so its gradients are that
// convolution's forward pass and weight gradient with the images exchanged.
std::vector<Value> transposed_gradient(GradientContext& context) {
  Graph& graph = context.graph();
  const Value dy = context.gradient();
  std::vector<Value> results(context.inputs());
  if (context.inputs() == 3 && context.needs(2))
    results[2] = graph.add_one("column_sum", {dy}, {{"channels_first", int64_t{1}}});
  if (context.needs(0)) {
    // If the output padding is at least the stride, dy has room for additional windows.
    Value dx = graph.add_one("conv2d", {dy, context.input(1)}, context.attributes());
    for (int axis = 2; axis < 4; ++axis)
      if (const int64_t extent = context.input(0).shape()[axis]; dx.shape()[axis] > extent)
        dx = slice(dx, axis, 0, extent);
    results[0] = dx;
  }
  if (context.needs(1))
    results[1] = graph.add_one("conv2d_backward_weights", {dy, context.input(0)},
                               like(context.attributes(), context.input(1).shape()));
  return results;
}

Attributes attributes_of(const ConvOptions& o) {
  return {{"stride", std::vector<int64_t>{o.stride[0], o.stride[1]}},
          {"padding", std::vector<int64_t>{o.padding[0], o.padding[1]}},
          {"dilation", std::vector<int64_t>{o.dilation[0], o.dilation[1]}},
          {"groups", o.groups},
          {"output_padding", std::vector<int64_t>{o.output_padding[0], o.output_padding[1]}}};
}

std::vector<Value> with_bias(Value x, Value weight, Value bias) {
  std::vector<Value> inputs = {x, weight};
  if (bias) inputs.push_back(bias);
  return inputs;
}

}  // namespace

std::vector<OpDefinition> convolution_ops() {
  return {
      {.name = "conv2d",
       .infer = infer_conv,
       .gradient = conv_gradient,
       .flops = conv_forward_flops,
       .applies = {"relu"}},
      {"conv2d_backward_data", infer_like, nullptr,
       [](const InferContext& c) { return flops_of(c.shape(0), c.shape(1)); }},
      {"conv2d_backward_weights", infer_like, nullptr,
       [](const InferContext& c) {
         return flops_of(c.shape(1), Shape(c.attributes().integers("shape")));
       }},
      {"conv_transpose2d", infer_transposed, transposed_gradient,
       [](const InferContext& c) { return flops_of(c.shape(0), c.shape(1)); }},
  };
}

Value conv2d(Value x, Value weight, Value bias, ConvOptions options) {
  return x.graph().add_one("conv2d", with_bias(x, weight, bias), attributes_of(options));
}

Value conv_transpose2d(Value x, Value weight, Value bias, ConvOptions options) {
  return x.graph().add_one("conv_transpose2d", with_bias(x, weight, bias), attributes_of(options));
}

}  // namespace artel
