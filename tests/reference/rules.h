// How the reference computes each op, one file per subject. The gradient rule of an op and the
// forward rule of its `*_backward` op are one function, checked against central differences.
#pragma once

#include <cmath>
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
  // The error of functions such as GELU is proportional to their terms, not to their result: hence
  // the part that does not depend on the value. What is smaller may vanish, and zero stays zero.
  double apply(double value) {
    if (size_ == 0 || value == 0) return value;
    if (std::abs(value) < size_ && random_.below(2) == 0) return 0;
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
  // For gradient rules: the results, and the gradients of the loss with respect to them.
  std::vector<const Array*> outputs = {};
  std::vector<const Array*> gradients = {};

  int count() const { return static_cast<int>(inputs.size()); }
  const Array& in(int i) const { return *inputs[i]; }
  const Array& out(int i = 0) const { return *outputs[i]; }
  const Array& dy(int i = 0) const { return *gradients[i]; }
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
  bool of_all_results = false;  // the loss may depend on all of them, not just on the first
};

// Multiplies `gradient` by the derivative of a ReLU with these results.
Array through_relu(const Array& gradient, const Array& result);

// The key of the random numbers of a node.
uint64_t random_key(const Call& call);
// The factors of `count` elements under dropout: 0 or 1 / (1 - probability).
std::vector<double> dropout_factors(uint64_t key, double probability, int64_t count);

double sigmoid(double x);

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
std::vector<Rule> quantised_rules();
std::vector<Rule> recurrence_rules();
std::vector<Rule> shape_rules();
std::vector<Rule> reduction_rules();
std::vector<Rule> loss_rules();
std::vector<Rule> class_rules();
std::vector<Rule> shard_rules();

}  // namespace artel::reference
