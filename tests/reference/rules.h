// How the reference computes each op, one subject a file. The gradient rule of an op and the
// forward rule of its `*_backward` op are one function, checked against central differences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/base/random.h"
#include "tests/reference/interpreter.h"

namespace artel::reference {

// Rounding errors at random (see Noise); none by default.
class Disturbance {
 public:
  explicit Disturbance(const Noise& noise) : size_(noise.size), random_(noise.seed) {}

  bool none() const { return size_ == 0; }
  // Functions such as GELU are inexact in proportion to their terms, not to what is left of them:
  // hence the part that does not depend on the value. What is zero stays so.
  double apply(double value) {
    if (size_ == 0 || value == 0) return value;
    return value * (1 + size_ * random_.normal()) + 0.1 * size_ * random_.normal();
  }

 private:
  double size_;
  Random random_;
};

// One node with its operands.
struct Call {
  const Graph& graph;
  const Node& node;
  std::vector<Array*> inputs;  // only cached_attention writes to one
  RandomKey key;
  Disturbance& disturbance;  // rules apply it to what they compute on the way and subtract
  // For gradient rules: the results, and the gradient of the loss with respect to the first.
  std::vector<const Array*> outputs = {};
  const Array* gradient = nullptr;

  int count() const { return static_cast<int>(inputs.size()); }
  const Array& in(int i) const { return *inputs[i]; }
  const Array& out(int i = 0) const { return *outputs[i]; }
  const Array& dy() const { return *gradient; }
  const Attributes& attributes() const { return node.attributes; }
  bool flag(const char* name) const { return node.attributes.flag(name); }
  const Shape& out_shape(int i = 0) const { return graph.type(node.outputs[i]).shape; }
  bool is_integer(int i) const { return !is_floating(graph.type(node.inputs[i]).dtype); }
};

using Arrays = std::vector<Array>;

struct Rule {
  std::string name;
  std::function<Arrays(const Call&)> forward;  // all outputs
  // A gradient for each input; empty (no shape and no data) for inputs that have none. Absent: not
  // differentiable.
  std::function<Arrays(const Call&)> backward = nullptr;
};

// Multiplies `gradient` by the derivative of a ReLU with these results.
Array through_relu(const Array& gradient, const Array& result);

// The key of the random numbers of a node.
uint64_t random_key(const Call& call);
// The factors of `count` elements under dropout: 0 or 1 / (1 - probability).
std::vector<double> dropout_factors(uint64_t key, double probability, int64_t count);

// 0.5 x (1 + erf(x / sqrt 2)), or the approximation by tanh, and its derivative.
struct ValueAndSlope {
  double value, slope;
};
ValueAndSlope gelu(double x);
ValueAndSlope gelu_tanh(double x);

std::vector<Rule> elementwise_rules();
std::vector<Rule> product_rules();
std::vector<Rule> convolution_rules();
std::vector<Rule> pooling_rules();
std::vector<Rule> normalisation_rules();
std::vector<Rule> dropout_rules();
std::vector<Rule> embedding_rules();
std::vector<Rule> attention_rules();
std::vector<Rule> shape_rules();
std::vector<Rule> reduction_rules();
std::vector<Rule> loss_rules();

}  // namespace artel::reference
