// What an op is: a name, a shape rule and a gradient rule. Its kernel is registered in
// exec/kernel.h.
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

// What a shape rule sees of the node that is being added.
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

// What a gradient rule sees: the node, and for each output the gradient of the loss with respect to
// it.
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
  // Empty if nothing that leads to the loss uses that output.
  Value gradient(int output = 0) { return output_gradients_[output]; }
  // Whether anyone wants the gradient of this input. Rules skip work for those that nobody wants.
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
  // One gradient for each input, empty where it is not needed or zero. Absent: not differentiable.
  std::function<std::vector<Value>(GradientContext&)> gradient;
  // Floating-point operations, for profiles and plans; absent: one for each output element.
  std::function<double(const InferContext&)> flops;
  // Whether an input may be other than f32, as indices and labels are. Absent: none may, and
  // integers are converted to f32 before the node.
  std::function<bool(const Attributes&, int input)> takes_integers = {};
};

// Throws if an op of that name exists. Thread safe; definitions live until the program ends.
void register_op(OpDefinition definition);
// Throws for an unknown name, with the nearest known one.
const OpDefinition& find_op(std::string_view name);

double node_flops(const Graph& graph, const Node& node);

}  // namespace artel
