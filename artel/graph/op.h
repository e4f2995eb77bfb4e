// The definition of an op: a name, a shape rule, and a gradient rule. Its kernel is registered in
// exec/kernel.h.
//
//   artel::register_op(
//       {.name = "softsign",
//        .infer = [](const artel::InferContext& context) -> std::vector<artel::TensorType> {
//          context.check_inputs(1, 1);
//          return {context.type(0)};
//        },
//        .gradient = [](artel::GradientContext& context) -> std::vector<artel::Value> {
//          const artel::Value width = artel::add_scalar(artel::unary("abs", context.input(0)), 1);
//          return {artel::div(context.gradient(), artel::mul(width, width))};
//        }});
//
// Built-in ops live one subject a file under graph/ops; graph/ops/catalogue.cc lists those files. A
// user adds an op with `register_op` (and `register_kernel`) before the first graph that uses it is
// built; examples/custom_op.cc shows it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/error.h"
#include "artel/graph/graph.h"

namespace artel {

struct QuantisedValue;

// The inputs of a shape rule: the node that is being added.
class InferContext {
 public:
  InferContext(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  const TensorType& type(int input) const { return graph_.type(node_.inputs[input]); }
  const Shape& shape(int input) const { return type(input).shape; }
  const Attributes& attributes() const { return node_.attributes; }

  // Throws an Error of kind shape that begins with the layer's name and the op's.
  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) reject(fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void reject(const std::string& reason) const;
  void check_inputs(int least, int most) const;

 private:
  const Graph& graph_;
  const Node& node_;
};

// The inputs of a gradient rule: the node, and for each output the gradient of the loss with
// respect to it.
class GradientContext {
 public:
  GradientContext(Graph& graph, const Node& node, std::vector<Value> output_gradients,
                  std::vector<bool> needed)
      : graph_(graph),
        node_(node),
        output_gradients_(std::move(output_gradients)),
        needed_(std::move(needed)) {}

  Graph& graph() { return graph_; }
  const Attributes& attributes() const { return node_.attributes; }
  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  Value input(int i) { return graph_.handle(node_.inputs[i]); }
  Value output(int i = 0) { return graph_.handle(node_.outputs[i]); }
  // Empty if the loss does not depend on that output.
  Value gradient(int output = 0) { return output_gradients_[output]; }
  // True if the gradient of this input is needed. Rules skip the work for other inputs.
  bool needs(int input) const { return needed_[input]; }

 private:
  Graph& graph_;
  const Node& node_;
  std::vector<Value> output_gradients_;
  std::vector<bool> needed_;
};

struct OpDefinition {
  std::string name;
  std::function<std::vector<TensorType>(const InferContext&)> infer;
  // One gradient per input, empty if it is zero or not needed. Without it, the op is not
  // differentiable.
  std::function<std::vector<Value>(GradientContext&)> gradient;
  // Floating-point operations, for profiles and plans. Defaults to one per output element.
  std::function<double(const InferContext&)> flops;
  // Whether an input may have a type other than f32, as indices and labels do. Absent: no input
  // may, and integers are converted to f32 before the node.
  std::function<bool(const Attributes&, int input)> takes_integers = {};
  // Computes each element of its only output from the same elements of its inputs, which may be
  // broadcast. A kernel in several shards can then compute it shard by shard.
  bool elementwise = false;
  // True if the op can be used as a layer in model.layers, like "relu". Requires a single input.
  bool activation = false;
  // Activations that its kernel can apply to the result, instead of a node of their own. Such a
  // node has an attribute of that name.
  std::vector<std::string> applies = {};
  // Adds the op with its second input, a matrix, stored with few bits. Absent: it reads floats
  // only.
  std::function<Value(const std::vector<Value>& inputs, const QuantisedValue& matrix)>
      with_quantised = {};
};

// Registers a custom op. Replaces one that the program registered earlier; existing graphs keep the
// old one. Throws for a built-in name. Definitions exist until the program ends. Thread safe.
void register_op(OpDefinition definition);
// Throws for an unknown name, with the nearest known one.
const OpDefinition& find_op(std::string_view name);
// The names of ops that are activations.
std::vector<std::string> activation_names();

// The activation that the node's kernel applies (OpDefinition::applies), or null.
const std::string* applied_activation(const Node& node);

double node_flops(const Graph& graph, const Node& node);

}  // namespace artel
