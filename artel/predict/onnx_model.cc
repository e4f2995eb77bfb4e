#include "artel/predict/onnx_model.h"

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/checkpoint/onnx_writer.h"
#include "artel/graph/op.h"
#include "artel/nn/graph_copier.h"
#include "artel/predict/batches.h"
#include "artel/tensor/quantised.h"

namespace artel {
namespace onnx {
namespace {

using checkpoint::OnnxAttribute;
using checkpoint::OnnxWriter;
using Names = std::vector<std::string>;
using Integers = std::vector<int64_t>;

// Added to the scores of masked keys.
constexpr float kUnseen = -1e30f;

// The node that is being translated, and its context.
struct OnnxNode {
  OnnxWriter& model;
  const Graph& graph;
  const Node& node;
  Names inputs;  // names of values in the model

  const Attributes& attributes() const { return node.attributes; }
  const Shape& shape(int i) const { return graph.type(node.inputs[i]).shape; }
  const Shape& out() const { return graph.type(node.outputs[0]).shape; }
  bool has(size_t input) const { return inputs.size() > input; }
  std::string add(const std::string& op, const Names& in,
                  const std::vector<OnnxAttribute>& attributes = {}) const {
    return model.node(op, in, attributes);
  }
  std::string number(double value) const { return model.number(static_cast<float>(value)); }
  std::string reshape(const std::string& x, const Integers& extents) const {
    return add("Reshape", {x, model.numbers(extents)});
  }
  std::string transpose(const std::string& x, const Integers& permutation) const {
    return add("Transpose", {x}, {{"perm", permutation}});
  }
  std::string slice(const std::string& x, int64_t axis, int64_t begin, int64_t end) const {
    return add("Slice", {x, model.numbers({begin}), model.numbers({end}), model.numbers({axis})});
  }
  std::string cast(const std::string& x, int64_t type) const {
    return add("Cast", {x}, {{"to", type}});
  }
};

constexpr int64_t kOnnxFloat = 1, kOnnxBool = 9;

using Translate = std::function<std::string(const OnnxNode&)>;

Translate same(const std::string& op) {
  return [op](const OnnxNode& n) { return n.add(op, n.inputs); };
}

Translate with_number(const std::string& op) {
  return [op](const OnnxNode& n) {
    return n.add(op, {n.inputs[0], n.number(n.attributes().number("value"))});
  };
}

Translate comparison(const std::string& op) {
  return [op](const OnnxNode& n) { return n.cast(n.add(op, n.inputs), kOnnxFloat); };
}

std::string gelu(const OnnxNode& n) {
  const std::string& x = n.inputs[0];
  const std::string erf = n.add("Erf", {n.add("Mul", {x, n.number(std::sqrt(0.5))})});
  const std::string twice = n.add("Mul", {x, n.add("Add", {erf, n.number(1)})});
  return n.add("Mul", {twice, n.number(0.5)});
}

std::string gelu_tanh(const OnnxNode& n) {
  const std::string& x = n.inputs[0];
  const std::string cube = n.add("Mul", {n.add("Mul", {x, x}), x});
  const std::string sum = n.add("Add", {x, n.add("Mul", {cube, n.number(0.044715)})});
  const std::string tanh =
      n.add("Tanh", {n.add("Mul", {sum, n.number(std::sqrt(2 / 3.14159265358979323846))})});
  const std::string twice = n.add("Mul", {x, n.add("Add", {tanh, n.number(1)})});
  return n.add("Mul", {twice, n.number(0.5)});
}

std::string select(const OnnxNode& n) {
  return n.add("Where", {n.cast(n.inputs[0], kOnnxBool), n.inputs[1], n.inputs[2]});
}

std::string dense(const OnnxNode& n) {
  const std::string weight =
      n.attributes().flag("in_out") ? n.inputs[1] : n.transpose(n.inputs[1], {1, 0});
  const std::string y = n.add("MatMul", {n.inputs[0], weight});
  return n.has(2) ? n.add("Add", {y, n.inputs[2]}) : y;
}

std::string matmul(const OnnxNode& n) {
  const auto turned = [&](int i, const char* flag) {
    if (!n.attributes().flag(flag)) return n.inputs[i];
    Integers order;
    for (int axis = 0; axis < n.shape(i).rank(); ++axis) order.push_back(axis);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return n.transpose(n.inputs[i], order);
  };
  return n.add("MatMul", {turned(0, "transpose_a"), turned(1, "transpose_b")});
}

std::vector<OnnxAttribute> window(const OnnxNode& n, const Integers& kernel) {
  const Integers& padding = n.attributes().integers("padding");
  return {{"kernel_shape", kernel},
          {"strides", n.attributes().integers("stride")},
          {"pads", Integers{padding[0], padding[1], padding[0], padding[1]}}};
}

Translate convolution(const std::string& op) {
  return [op](const OnnxNode& n) {
    std::vector<OnnxAttribute> attributes = window(n, {n.shape(1)[2], n.shape(1)[3]});
    attributes.push_back({"dilations", n.attributes().integers("dilation")});
    attributes.push_back({"group", n.attributes().integer("groups")});
    if (op == "ConvTranspose")
      attributes.push_back({"output_padding", n.attributes().integers("output_padding")});
    return n.add(op, n.inputs, attributes);
  };
}

std::string max_pool(const OnnxNode& n) {
  return n.add("MaxPool", n.inputs, window(n, n.attributes().integers("kernel")));
}

std::string average_pool(const OnnxNode& n) {
  std::vector<OnnxAttribute> attributes = window(n, n.attributes().integers("kernel"));
  attributes.push_back({"count_include_pad", n.attributes().integer("count_padding")});
  return n.add("AveragePool", n.inputs, attributes);
}

// Adaptive pooling with windows of equal size. The image must be a multiple of the result.
Translate adaptive_pool(const std::string& op) {
  return [op](const OnnxNode& n) {
    const Integers& size = n.attributes().integers("size");
    const int64_t height = n.shape(0)[2], width = n.shape(0)[3];
    require(
        height % size[0] == 0 && width % size[1] == 0, ErrorKind::unsupported,
        "[onnx] layer '{}': adaptive pooling of {} x {} to {} x {} has windows of different sizes, "
        "which ONNX does not support",
        n.node.name, height, width, size[0], size[1]);
    const Integers kernel = {height / size[0], width / size[1]};
    return n.add(op, n.inputs, {{"kernel_shape", kernel}, {"strides", kernel}});
  };
}

std::string batch_norm(const OnnxNode& n) {
  return n.add("BatchNormalization", n.inputs, {{"epsilon", n.attributes().number("epsilon")}});
}

std::string layer_norm(const OnnxNode& n) {
  return n.add("LayerNormalization", n.inputs,
               {{"axis", int64_t{-1}}, {"epsilon", n.attributes().number("epsilon")}});
}

std::string rms_norm(const OnnxNode& n) {
  const std::string& x = n.inputs[0];
  const std::string mean = n.add("ReduceMean", {n.add("Mul", {x, x})},
                                 {{"axes", Integers{-1}}, {"keepdims", int64_t{1}}});
  const std::string deviation =
      n.add("Sqrt", {n.add("Add", {mean, n.number(n.attributes().number("epsilon"))})});
  return n.add("Mul", {n.add("Div", {x, deviation}), n.inputs[1]});
}

Translate over_last_axis(const std::string& op) {
  return [op](const OnnxNode& n) { return n.add(op, n.inputs, {{"axis", int64_t{-1}}}); };
}

// A matrix to add to the scores: kUnseen where a query must not attend to a key, otherwise 0.
Tensor causal_mask(int64_t queries, int64_t keys) {
  Tensor mask({queries, keys});
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = 0; k < keys; ++k)
      mask.values<float>()[q * keys + k] = k > q + keys - queries ? kUnseen : 0;
  return mask;
}

std::string attention(const OnnxNode& n) {
  const bool packed = n.attributes().flag("packed");
  const int64_t batch = n.out()[0], queries = n.out()[1], width = n.out()[2];
  const int64_t keys = n.shape(packed ? 0 : 1)[1], heads = n.attributes().integer("heads");
  const int64_t part = width / heads;
  const auto operand = [&](int i, int64_t positions, const Integers& order) {
    const std::string x =
        packed ? n.slice(n.inputs[0], 2, i * width, (i + 1) * width) : n.inputs[i];
    return n.transpose(n.reshape(x, {batch, positions, heads, part}), order);
  };
  std::string scores =
      n.add("MatMul", {operand(0, queries, {0, 2, 1, 3}), operand(1, keys, {0, 2, 3, 1})});
  scores = n.add("Mul", {scores, n.number(1 / std::sqrt(static_cast<double>(part)))});
  if (n.attributes().flag("causal"))
    scores = n.add("Add", {scores, n.model.tensor("causal", causal_mask(queries, keys))});
  if (const size_t mask = packed ? 1 : 3; n.has(mask)) {
    const std::string seen = n.cast(n.inputs[mask], kOnnxBool);
    const std::string added = n.add("Where", {seen, n.number(0), n.number(kUnseen)});
    scores = n.add("Add", {scores, n.reshape(added, {batch, 1, 1, keys})});
  }
  const std::string shares = n.add("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const std::string y = n.add("MatMul", {shares, operand(2, keys, {0, 2, 1, 3})});
  return n.reshape(n.transpose(y, {0, 2, 1, 3}), {batch, queries, width});
}

std::string rotary(const OnnxNode& n) {
  require(n.inputs.size() == 2, ErrorKind::unsupported,
          "[onnx] layer '{}': attention with a cache cannot be exported", n.node.name);
  const Shape& x = n.shape(0);
  const int64_t heads = n.attributes().integer("heads"), part = x[2] / heads, half = part / 2;
  const std::string split = n.reshape(n.inputs[0], {x[0], x[1], heads, part});
  const std::string a = n.slice(split, 3, 0, half), b = n.slice(split, 3, half, part);
  const auto angles = [&](int64_t begin) {
    const std::string rows = n.slice(n.slice(n.inputs[1], 0, 0, x[1]), 1, begin, begin + half);
    return n.reshape(rows, {1, x[1], 1, half});
  };
  const std::string cosine = angles(0), sine = angles(half);
  const std::string first = n.add("Sub", {n.add("Mul", {a, cosine}), n.add("Mul", {b, sine})});
  const std::string second = n.add("Add", {n.add("Mul", {b, cosine}), n.add("Mul", {a, sine})});
  const std::string both = n.add("Concat", {first, second}, {{"axis", int64_t{3}}});
  return n.reshape(both, x.extents());
}

std::string pad(const OnnxNode& n) {
  const int64_t axis = n.attributes().integer("axis"), begin = n.attributes().integer("begin");
  Integers pads(static_cast<size_t>(2 * n.out().rank()), 0);
  pads[axis] = begin;
  pads[n.out().rank() + axis] = n.out()[static_cast<int>(axis)] - n.attributes().integer("end");
  return n.add("Pad", {n.inputs[0], n.model.numbers(pads)});
}

Translate reduction(const std::string& op) {
  return [op](const OnnxNode& n) {
    Integers axes = n.attributes().integers("axes");
    if (axes.empty())
      for (int axis = 0; axis < n.shape(0).rank(); ++axis) axes.push_back(axis);
    const OnnxAttribute keep = {"keepdims", int64_t{n.attributes().flag("keep")}};
    // In opset 13, ReduceSum takes its axes as an input, all other reductions as an attribute.
    if (op == "ReduceSum") return n.add(op, {n.inputs[0], n.model.numbers(axes)}, {keep});
    return n.add(op, n.inputs, {{"axes", axes}, keep});
  };
}

std::map<std::string, Translate> make_translations() {
  std::map<std::string, Translate> all = {
      {"square",
       [](const OnnxNode& n) {
         return n.add("Mul", {n.inputs[0], n.inputs[0]});
       }},
      {"rsqrt", [](const OnnxNode& n) { return n.add("Reciprocal", {n.add("Sqrt", n.inputs)}); }},
      {"silu",
       [](const OnnxNode& n) {
         return n.add("Mul", {n.inputs[0], n.add("Sigmoid", n.inputs)});
       }},
      {"gelu", gelu},
      {"gelu_tanh", gelu_tanh},
      {"greater", comparison("Greater")},
      {"equal", comparison("Equal")},
      {"select", select},
      {"add_scalar", with_number("Add")},
      {"mul_scalar", with_number("Mul")},
      {"pow_scalar", with_number("Pow")},
      {"clamp_min", with_number("Max")},
      {"clamp_max", with_number("Min")},
      {"leaky_relu",
       [](const OnnxNode& n) {
         return n.add("LeakyRelu", n.inputs, {{"alpha", n.attributes().number("value")}});
       }},
      {"to_f32", [](const OnnxNode& n) { return n.cast(n.inputs[0], kOnnxFloat); }},
      {"dense", dense},
      {"matmul", matmul},
      {"conv2d", convolution("Conv")},
      {"conv_transpose2d", convolution("ConvTranspose")},
      {"max_pool", max_pool},
      {"average_pool", average_pool},
      {"adaptive_average_pool", adaptive_pool("AveragePool")},
      {"adaptive_max_pool", adaptive_pool("MaxPool")},
      {"batch_norm_inference", batch_norm},
      {"layer_norm", layer_norm},
      {"rms_norm", rms_norm},
      {"softmax", over_last_axis("Softmax")},
      {"log_softmax", over_last_axis("LogSoftmax")},
      {"embedding",
       [](const OnnxNode& n) {
         return n.add("Gather", {n.inputs[1], n.inputs[0]});
       }},
      {"attention", attention},
      {"rotary", rotary},
      {"reshape", [](const OnnxNode& n) { return n.reshape(n.inputs[0], n.out().extents()); }},
      {"broadcast_to",
       [](const OnnxNode& n) {
         return n.add("Expand", {n.inputs[0], n.model.numbers(n.out().extents())});
       }},
      {"transpose",
       [](const OnnxNode& n) {
         return n.transpose(n.inputs[0], n.attributes().integers("permutation"));
       }},
      {"concat",
       [](const OnnxNode& n) {
         return n.add("Concat", n.inputs, {{"axis", n.attributes().integer("axis")}});
       }},
      {"slice",
       [](const OnnxNode& n) {
         return n.slice(n.inputs[0], n.attributes().integer("axis"),
                        n.attributes().integer("begin"), n.attributes().integer("end"));
       }},
      {"slice_backward", pad},
      {"reduce_sum", reduction("ReduceSum")},
      {"reduce_mean", reduction("ReduceMean")},
      {"reduce_max", reduction("ReduceMax")},
      {"reduce_min", reduction("ReduceMin")}};
  const std::pair<const char*, const char*> equal[] = {{"neg", "Neg"},
                                                       {"abs", "Abs"},
                                                       {"sqrt", "Sqrt"},
                                                       {"exp", "Exp"},
                                                       {"log", "Log"},
                                                       {"sin", "Sin"},
                                                       {"cos", "Cos"},
                                                       {"tanh", "Tanh"},
                                                       {"sigmoid", "Sigmoid"},
                                                       {"relu", "Relu"},
                                                       {"softplus", "Softplus"},
                                                       {"erf", "Erf"},
                                                       {"sign", "Sign"},
                                                       {"reciprocal", "Reciprocal"},
                                                       {"add", "Add"},
                                                       {"sub", "Sub"},
                                                       {"mul", "Mul"},
                                                       {"div", "Div"},
                                                       {"maximum", "Max"},
                                                       {"minimum", "Min"},
                                                       {"pow", "Pow"}};
  for (const auto& [ours, theirs] : equal) all[ours] = same(theirs);
  return all;
}

const Translate& translation_of(const Node& node) {
  static const std::map<std::string, Translate> all = make_translations();
  const auto found = all.find(node.op->name);
  require(found != all.end(), ErrorKind::unsupported,
          "[onnx] layer '{}': export of the op '{}' is not supported", node.name, node.op->name);
  return found->second;
}

// True if ONNX can store the matrix's scales: one for each row.
bool has_row_scales(const QuantisedMatrix& matrix) {
  return matrix.bits() == 8 && matrix.group() == matrix.columns();
}

// Writes a matrix of codes. Returns the name of its numbers, which are computed in the model.
std::string dequantised(OnnxWriter& file, const std::string& name, const QuantisedMatrix& matrix) {
  const std::string codes = file.tensor(name + std::string(kCodes), matrix.codes);
  const Tensor scales = matrix.scales.reshaped({matrix.rows()}).to(DType::f32);
  const std::string numbers =
      file.node("DequantizeLinear", {codes, file.tensor(name + std::string(kScales), scales)},
                {{"axis", int64_t{0}}});
  return matrix.turned ? file.node("Transpose", {numbers}, {{"perm", Integers{1, 0}}}) : numbers;
}

// The weights of a network as a model stores them.
class OnnxWeights {
 public:
  explicit OnnxWeights(const NamedTensors& weights)
      : weights_(weights), numbers_(expand_all(weights)) {
    for (const NamedTensor& weight : weights)
      if (const auto name = name_of_codes(weight.name)) quantised_.insert(*name);
  }

  std::string write(OnnxWriter& file, const ValueData& value) const {
    const Tensor* const found = find_tensor(numbers_, value.name);
    require(found && found->shape() == value.type.shape, ErrorKind::shape,
            "the weights do not fit the model: '{}' {}", value.name,
            found ? "has another shape" : "is missing");
    if (quantised_.contains(value.name)) {
      const QuantisedMatrix matrix = find_quantised(weights_, value.name);
      if (has_row_scales(matrix)) return dequantised(file, value.name, matrix);
    }
    return file.tensor(value.name, found->to(DType::f32));
  }

 private:
  const NamedTensors& weights_;
  NamedTensors numbers_;
  std::set<std::string> quantised_;
};

}  // namespace
}  // namespace onnx

std::string onnx_model(const Model& model, const TensorType& sample, const NamedTensors& weights,
                       int64_t samples) {
  nn::BuiltNetwork network;
  nn::build_aside(model, batch_of(sample, samples), false, {}, network);
  const Graph& graph = network.graph;
  const onnx::OnnxWeights stored(weights);
  checkpoint::OnnxWriter file;
  std::map<ValueId, std::string> names;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ValueData& value = graph.value(id);
    if (value.kind == ValueKind::computed) continue;
    if (value.kind == ValueKind::input) {
      file.input(names[id] = value.name, value.type.shape, value.type.dtype);
    } else if (value.kind == ValueKind::constant) {
      names[id] = file.tensor(value.name, graph.constant_data(id));
    } else {
      names[id] = stored.write(file, value);
    }
  }
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(names.at(input));
    names[node.outputs[0]] = onnx::translation_of(node)({file, graph, node, inputs});
  }
  const TensorType& type = graph.type(network.prediction);
  file.output("prediction", names.at(network.prediction), type.shape, type.dtype);
  return file.file();
}

}  // namespace artel
