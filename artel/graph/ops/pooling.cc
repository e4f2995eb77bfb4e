#include <algorithm>

#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

void check_pooled_image(const InferContext& context) {
  context.check_inputs(1, 1);
  context.check(context.shape(0).rank() == 4,
                "got input {}, expected [batch, channels, height, width]",
                to_string(context.shape(0)));
}

std::vector<TensorType> infer_pool(const InferContext& context) {
  check_pooled_image(context);
  const Attributes& a = context.attributes();
  Shape y = context.shape(0);
  for (int i = 0; i < 2; ++i) {
    const int64_t kernel = a.integers("kernel")[i], stride = a.integers("stride")[i],
                  padding = a.integers("padding")[i];
    context.check(kernel > 0 && stride > 0 && padding >= 0 && 2 * padding <= kernel,
                  "got kernel {}, stride {}, padding {}; padding may be at most half the kernel",
                  kernel, stride, padding);
    const int64_t room = y[2 + i] + 2 * padding - kernel;
    context.check(room >= 0, "the window of {} does not fit into the input {}", kernel,
                  to_string(context.shape(0)));
    y[2 + i] = room / stride + 1;
  }
  return {{DType::f32, y}};
}

std::vector<TensorType> infer_adaptive(const InferContext& context) {
  check_pooled_image(context);
  Shape y = context.shape(0);
  for (int i = 0; i < 2; ++i) {
    y[2 + i] = context.attributes().integers("size")[i];
    context.check(y[2 + i] > 0, "got the output size {}, expected a positive one", y[2 + i]);
  }
  return {{DType::f32, y}};
}

// The second output of the maximum remembers which element of its window it was: in a byte where
// windows are small enough.
std::vector<TensorType> with_indices(const InferContext& context, std::vector<TensorType> types) {
  int64_t window = 1;
  for (int i = 0; i < 2; ++i) {
    const int64_t in = context.shape(0)[2 + i], out = types[0].shape[2 + i];
    window *= context.attributes().has("kernel") ? context.attributes().integers("kernel")[i]
                                                 : std::min(in, in / out + 2);
  }
  types.push_back({window <= 256 ? DType::u8 : DType::i32, types[0].shape});
  return types;
}

// dx from dy (and the remembered positions); its shape is an attribute.
std::function<std::vector<Value>(GradientContext&)> backward(std::string op) {
  return [op = std::move(op)](GradientContext& context) -> std::vector<Value> {
    Attributes attributes = context.attributes();
    attributes.set("shape", context.input(0).shape().extents());
    std::vector<Value> inputs = {context.gradient()};
    if (op.find("max") != std::string::npos) inputs.push_back(context.output(1));
    return {context.graph().add_one(op, std::move(inputs), std::move(attributes))};
  };
}

std::vector<TensorType> infer_pool_backward(const InferContext& context) {
  return {{DType::f32, Shape(context.attributes().integers("shape"))}};
}

Attributes attributes_of(const PoolOptions& o) {
  return {{"kernel", std::vector<int64_t>{o.kernel[0], o.kernel[1]}},
          {"stride", std::vector<int64_t>{o.stride[0], o.stride[1]}},
          {"padding", std::vector<int64_t>{o.padding[0], o.padding[1]}},
          {"count_padding", int64_t{o.count_padding}}};
}

Attributes size_of(int64_t height, int64_t width) {
  return {{"size", std::vector<int64_t>{height, width}}};
}

}  // namespace

std::vector<OpDefinition> pooling_ops() {
  return {
      {"max_pool", [](const InferContext& c) { return with_indices(c, infer_pool(c)); },
       backward("max_pool_backward"), nullptr},
      {"average_pool", infer_pool, backward("average_pool_backward"), nullptr},
      {"adaptive_max_pool",
       [](const InferContext& c) { return with_indices(c, infer_adaptive(c)); },
       backward("max_pool_backward"), nullptr},
      {"adaptive_average_pool", infer_adaptive, backward("adaptive_average_pool_backward"),
       nullptr},
      {"max_pool_backward", infer_pool_backward, nullptr, nullptr,
       [](const Attributes&, int input) { return input == 1; }},
      {"average_pool_backward", infer_pool_backward, nullptr, nullptr},
      {"adaptive_average_pool_backward", infer_pool_backward, nullptr, nullptr},
  };
}

Value max_pool(Value x, PoolOptions options) {
  return x.graph().add_one("max_pool", {x}, attributes_of(options));
}
Value average_pool(Value x, PoolOptions options) {
  return x.graph().add_one("average_pool", {x}, attributes_of(options));
}
Value adaptive_average_pool(Value x, int64_t height, int64_t width) {
  return x.graph().add_one("adaptive_average_pool", {x}, size_of(height, width));
}
Value adaptive_max_pool(Value x, int64_t height, int64_t width) {
  return x.graph().add_one("adaptive_max_pool", {x}, size_of(height, width));
}

}  // namespace artel
