#include "artel/nn/layers.h"

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"

namespace artel::nn {
namespace {

constexpr std::string_view kNamed = "named";

void check_rank(Build& build, Value x, int least, std::string_view kind,
                std::string_view expected) {
  require(x.shape().rank() >= least, ErrorKind::shape, "[layer '{}'] {}: got input {}, expected {}",
          build.graph().scope(), kind, to_string(x.shape()), expected);
}

Initialiser or_default(const Initialiser& given) { return given ? given : fan_in_uniform(); }

ConvOptions graph_options(const ConvLayerOptions& o) {
  return {.stride = o.stride,
          .padding = o.padding,
          .dilation = o.dilation,
          .groups = o.groups,
          .output_padding = o.output_padding};
}

void check_groups(Build& build, const ConvLayerOptions& options, int64_t in, int64_t out) {
  require(options.groups > 0, ErrorKind::invalid_argument,
          "[layer '{}'] groups: got {}, expected at least 1", build.graph().scope(),
          options.groups);
  require(
      in % options.groups == 0 && out % options.groups == 0, ErrorKind::shape,
      "[layer '{}'] groups: got {} with {} input and {} output channels, expected a number that "
      "divides both",
      build.graph().scope(), options.groups, in, out);
}

// The convolution that made `x`, with a bias; nothing if that is none, or has one already.
Value with_folded_norm(Build& build, Value x) {
  Graph& graph = build.graph();
  const NodeId producer = graph.value(x.id()).producer;
  if (producer < 0) return {};
  const Node node = graph.node(producer);
  if (node.op->name != "conv2d" || node.inputs.size() != 2) return {};
  const Value bias = build.parameter("bias", {x.shape()[1]}, constant(0));
  return graph.add_one("conv2d", {graph.handle(node.inputs[0]), graph.handle(node.inputs[1]), bias},
                       node.attributes);
}

PoolOptions graph_options(std::array<int64_t, 2> kernel, const PoolLayerOptions& o) {
  return {.kernel = kernel,
          .stride = {o.stride[0] ? o.stride[0] : kernel[0], o.stride[1] ? o.stride[1] : kernel[1]},
          .padding = o.padding};
}

}  // namespace

Layer sequential(std::vector<Layer> layers) {
  return {"sequential", [layers = std::move(layers)](Build& build, Value x) {
            for (size_t i = 0; i < layers.size(); ++i) {
              if (layers[i].kind() == kNamed) {
                x = layers[i](build, x);
              } else {
                const Graph::Scope scope(build.graph(), std::to_string(i));
                x = layers[i](build, x);
              }
            }
            return x;
          }};
}

Layer chain(std::vector<Layer> layers) {
  return {std::string(kNamed), [layers = std::move(layers)](Build& build, Value x) {
            for (const Layer& layer : layers) x = layer(build, x);
            return x;
          }};
}

Layer named(std::string name, Layer layer) {
  return {std::string(kNamed), [name = std::move(name), layer](Build& build, Value x) {
            const Graph::Scope scope(build.graph(), name);
            return layer(build, x);
          }};
}

Layer residual(Layer body, std::optional<Layer> shortcut, bool relu_after) {
  return {"residual", [=](Build& build, Value x) {
            const Value main = body(build, x);
            const Value side = shortcut ? (*shortcut)(build, x) : x;
            require(
                main.shape() == side.shape(), ErrorKind::shape,
                "[layer '{}'] residual: the body gives {}, the shortcut {}; give the shortcut a "
                "convolution that changes the shape",
                build.graph().scope(), to_string(main.shape()), to_string(side.shape()));
            const Value sum = add(main, side);
            return relu_after ? artel::relu(sum) : sum;
          }};
}

Layer dense(int64_t all_units, DenseOptions options) {
  return {"dense", [=](Build& build, Value x) {
            const int64_t units = build.units(all_units);
            check_rank(build, x, 2, "dense", "[batch, features]; put a flatten before it");
            const int64_t in = x.shape().back();
            const bool in_out = options.order == WeightOrder::in_out;
            const Initialiser initialiser = options.weight ? options.weight : fan_in_uniform(in);
            const Value weight = build.parameter(
                "weight", in_out ? Shape{in, units} : Shape{units, in}, initialiser);
            Value bias;
            if (options.bias)
              bias =
                  build.parameter("bias", {units},
                                  options.initial_bias ? options.initial_bias : fan_in_uniform(in));
            return artel::dense(x, weight, bias, options.order);
          }};
}

Layer conv(int64_t all_channels, std::array<int64_t, 2> kernel, ConvLayerOptions given) {
  return {"conv", [=](Build& build, Value x) {
            const int64_t channels = build.units(all_channels);
            ConvLayerOptions options = given;
            // A narrowed depthwise convolution still has one group for each channel.
            if (options.groups == all_channels) options.groups = channels;
            check_rank(build, x, 4, "conv", "[batch, channels, height, width]");
            check_groups(build, options, x.shape()[1], channels);
            const int64_t in = x.shape()[1] / options.groups;
            const Value weight = build.parameter("weight", {channels, in, kernel[0], kernel[1]},
                                                 or_default(options.weight));
            Value bias;
            if (options.bias)
              bias =
                  build.parameter("bias", {channels}, fan_in_uniform(in * kernel[0] * kernel[1]));
            return conv2d(x, weight, bias, graph_options(options));
          }};
}

Layer conv1d(int64_t channels, int64_t kernel, Conv1dLayerOptions options) {
  return {"conv1d", [=](Build& build, Value x) {
            require(x.shape().rank() == 3, ErrorKind::shape,
                    "[layer '{}'] conv1d: got input {}, expected [batch, channels, length]; images "
                    "are for conv",
                    build.graph().scope(), to_string(x.shape()));
            build.require_whole_text("conv1d");
            const ConvLayerOptions flat = {.stride = {1, options.stride},
                                           .padding = {0, options.padding},
                                           .dilation = {1, options.dilation},
                                           .groups = options.groups};
            const int64_t batch = x.shape()[0], in = x.shape()[1], length = x.shape()[2];
            check_groups(build, flat, in, channels);
            const int64_t each = in / options.groups;
            const Value weight =
                build.parameter("weight", {channels, each, kernel}, or_default(options.weight));
            Value bias;
            if (options.bias)
              bias = build.parameter("bias", {channels}, fan_in_uniform(each * kernel));
            const Value y = conv2d(artel::reshape(x, {batch, in, 1, length}),
                                   artel::reshape(weight, {channels, each, 1, kernel}), bias,
                                   graph_options(flat));
            return artel::reshape(y, {batch, channels, y.shape()[3]});
          }};
}

Layer conv_transpose(int64_t channels, std::array<int64_t, 2> kernel, ConvLayerOptions options) {
  return {"conv_transpose", [=](Build& build, Value x) {
            check_rank(build, x, 4, "conv_transpose", "[batch, channels, height, width]");
            check_groups(build, options, x.shape()[1], channels);
            const int64_t per_group = channels / options.groups;
            const Value weight =
                build.parameter("weight", {x.shape()[1], per_group, kernel[0], kernel[1]},
                                or_default(options.weight));
            Value bias;
            if (options.bias)
              bias = build.parameter("bias", {channels},
                                     fan_in_uniform(per_group * kernel[0] * kernel[1]));
            return conv_transpose2d(x, weight, bias, graph_options(options));
          }};
}

Layer max_pool(std::array<int64_t, 2> kernel, PoolLayerOptions options) {
  return {"max_pool",
          [=](Build&, Value x) { return artel::max_pool(x, graph_options(kernel, options)); }};
}

Layer average_pool(std::array<int64_t, 2> kernel, PoolLayerOptions options) {
  return {"average_pool",
          [=](Build&, Value x) { return artel::average_pool(x, graph_options(kernel, options)); }};
}

Layer adaptive_average_pool(int64_t height, int64_t width) {
  return {"adaptive_average_pool",
          [=](Build&, Value x) { return artel::adaptive_average_pool(x, height, width); }};
}

Layer adaptive_max_pool(int64_t height, int64_t width) {
  return {"adaptive_max_pool",
          [=](Build&, Value x) { return artel::adaptive_max_pool(x, height, width); }};
}

Layer batch_norm(BatchNormLayerOptions options) {
  return {"batch_norm", [=](Build& build, Value x) {
            check_rank(build, x, 2, "batch_norm", "[batch, channels, ...]");
            if (build.folds_norms())
              if (const Value folded = with_folded_norm(build, x)) return folded;
            const Shape channels = {x.shape()[1]};
            const Value scale = build.parameter("weight", channels, constant(1));
            const Value shift = build.parameter("bias", channels, constant(0));
            const Value mean = build.state("running_mean", channels, 0);
            const Value variance = build.state("running_var", channels, 1);
            // A frozen batch norm is part of a fixed function: its statistics do not change.
            if (!build.trains("weight") && !build.trains("bias"))
              return batch_norm_inference(x, scale, shift, mean, variance, options.epsilon);
            return artel::batch_norm(x, scale, shift, mean, variance,
                                     {options.epsilon, options.momentum});
          }};
}

Layer folding_norms(Layer network) {
  return {network.kind(), [network](Build& build, Value x) {
            const Build::FoldingNorms folding(build);
            return network(build, x);
          }};
}

Layer layer_norm(double epsilon) {
  return {"layer_norm", [=](Build& build, Value x) {
            const Shape width = {x.shape().back()};
            const Value scale = build.parameter("weight", width, constant(1));
            const Value shift = build.parameter("bias", width, constant(0));
            return artel::layer_norm(x, scale, shift, epsilon);
          }};
}

Layer rms_norm(double epsilon) {
  return {"rms_norm", [=](Build& build, Value x) {
            const Value scale = build.parameter("weight", {x.shape().back()}, constant(1));
            return artel::rms_norm(x, scale, epsilon);
          }};
}

Layer dropout(double probability) {
  return {"dropout", [=](Build& build, Value x) {
            return build.training() && probability > 0 ? artel::dropout(x, probability) : x;
          }};
}

Layer mask_patches(int64_t size, double share) {
  return {"mask_patches", [=](Build& build, Value x) {
            check_rank(build, x, 4, "mask_patches", "[batch, channels, height, width]");
            const int64_t batch = x.shape()[0], height = x.shape()[2], width = x.shape()[3];
            require(size > 0 && height % size == 0 && width % size == 0, ErrorKind::shape,
                    "[layer '{}'] mask_patches: got {} x {} pixels and patches of {}, expected a "
                    "whole number of them",
                    build.graph().scope(), height, width, size);
            if (!build.training() || share <= 0) return x;
            const int64_t rows = height / size, columns = width / size;
            std::vector<float> ones(static_cast<size_t>(rows * columns), 1.0f);
            const Value all = broadcast_to(
                build.graph().constant("patches", Tensor::from<float>({1, rows * columns}, ones)),
                {batch, rows * columns});
            // Undoes the scaling of kept values by dropout.
            const Value kept = mul_scalar(artel::dropout(all, share), 1 - share);
            const Value tall =
                artel::reshape(broadcast_to(artel::reshape(kept, {batch * rows, 1, columns}),
                                            {batch * rows, size, columns}),
                               {batch * height * columns, 1});
            const Value mask = artel::reshape(broadcast_to(tall, {batch * height * columns, size}),
                                              {batch, 1, height, width});
            return mul(x, mask);
          }};
}

Layer embedding(int64_t rows, int64_t width) {
  return {"embedding", [=](Build& build, Value x) {
            return artel::embedding(x, build.parameter("weight", {rows, width}, normal(1)));
          }};
}

Layer embedding_bag(int64_t rows, int64_t width, EmbeddingBagOptions options) {
  return {"embedding_bag", [=](Build& build, Value x) {
            require(x.shape().rank() == 2, ErrorKind::shape,
                    "[layer '{}'] embedding_bag: got input {}, expected [batch, tokens]",
                    build.graph().scope(), to_string(x.shape()));
            Value all = embedding(rows, width)(build, x);
            if (!options.ignore_padding)
              return reduce(options.sum ? Reduction::sum : Reduction::mean, all, {1});
            const Value counts = clamp_max(unary("to_f32", x), 1);
            const Value total =
                artel::sum(mul(all, artel::reshape(counts, {x.shape()[0], -1, 1})), {1});
            return options.sum ? total : div(total, clamp_min(artel::sum(counts, {1}, true), 1));
          }};
}

Layer flatten() {
  return {"flatten", [](Build&, Value x) { return artel::flatten(x); }};
}

Layer reshape(std::vector<int64_t> sample_shape) {
  return {"reshape", [=](Build&, Value x) {
            std::vector<int64_t> extents = {x.shape()[0]};
            extents.insert(extents.end(), sample_shape.begin(), sample_shape.end());
            return artel::reshape(x, Shape(std::move(extents)));
          }};
}

Layer activation(std::string name) {
  return {name, [name](Build&, Value x) { return unary(name, x); }};
}

Layer relu() { return activation("relu"); }

Layer leaky_relu(double slope) {
  return {"leaky_relu", [=](Build&, Value x) { return artel::leaky_relu(x, slope); }};
}

}  // namespace artel::nn
