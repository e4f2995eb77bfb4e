// Element-wise ops: y = f(a, b, c) with broadcasting, and the partial derivatives of f.
#include <array>
#include <cmath>
#include <numbers>

#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

// The operands of one element: up to three inputs and the attribute "value".
struct At {
  double a = 0, b = 0, c = 0;
  double value = 0;
};

using Function = double (*)(const At&);

struct Element {
  const char* name;
  int inputs;
  Function f;
  std::array<Function, 3> slopes = {};  // null: no gradient reaches that input
  bool differentiable = true;
};

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double zero(const At&) { return 0; }
double one(const At&) { return 1; }

// Larger or smaller of two: a tie goes to the first, and NaN propagates.
double larger(const At& x) { return x.b > x.a || std::isnan(x.b) ? x.b : x.a; }
double smaller(const At& x) { return x.b < x.a || std::isnan(x.b) ? x.b : x.a; }

const std::vector<Element>& elements() {
  static const std::vector<Element> all = {
      {"add", 2, [](const At& x) { return x.a + x.b; }, {one, one}},
      {"sub", 2, [](const At& x) { return x.a - x.b; }, {one, [](const At&) { return -1.0; }}},
      {"mul",
       2,
       [](const At& x) { return x.a * x.b; },
       {[](const At& x) { return x.b; }, [](const At& x) { return x.a; }}},
      {"div",
       2,
       [](const At& x) { return x.a / x.b; },
       {[](const At& x) { return 1 / x.b; }, [](const At& x) { return -x.a / (x.b * x.b); }}},
      {"maximum",
       2,
       larger,
       {[](const At& x) { return x.a >= x.b ? 1.0 : 0.0; },
        [](const At& x) { return x.b > x.a ? 1.0 : 0.0; }}},
      {"minimum",
       2,
       smaller,
       {[](const At& x) { return x.a <= x.b ? 1.0 : 0.0; },
        [](const At& x) { return x.b < x.a ? 1.0 : 0.0; }}},
      {"pow",
       2,
       [](const At& x) { return std::pow(x.a, x.b); },
       {[](const At& x) { return x.b == 0 ? 0 : x.b * std::pow(x.a, x.b - 1); },
        [](const At& x) { return x.a == 0 && x.b >= 0 ? 0 : std::pow(x.a, x.b) * std::log(x.a); }}},
      {"greater", 2, [](const At& x) { return x.a > x.b ? 1.0 : 0.0; }, {}, false},
      {"equal", 2, [](const At& x) { return x.a == x.b ? 1.0 : 0.0; }, {}, false},
      {"select",
       3,
       [](const At& x) { return x.a != 0 ? x.b : x.c; },
       {nullptr, [](const At& x) { return x.a != 0 ? 1.0 : 0.0; },
        [](const At& x) { return x.a != 0 ? 0.0 : 1.0; }}},

      {"neg", 1, [](const At& x) { return -x.a; }, {[](const At&) { return -1.0; }}},
      {"abs", 1, [](const At& x) { return std::abs(x.a); }, {[](const At& x) {
         return sign(x.a);
       }}},
      {"square", 1, [](const At& x) { return x.a * x.a; }, {[](const At& x) { return 2 * x.a; }}},
      {"sqrt", 1, [](const At& x) { return std::sqrt(x.a); }, {[](const At& x) {
         return 0.5 / std::sqrt(x.a);
       }}},
      {"rsqrt", 1, [](const At& x) { return 1 / std::sqrt(x.a); }, {[](const At& x) {
         return -0.5 * std::pow(x.a, -1.5);
       }}},
      {"reciprocal", 1, [](const At& x) { return 1 / x.a; }, {[](const At& x) {
         return -1 / (x.a * x.a);
       }}},
      {"exp", 1, [](const At& x) { return std::exp(x.a); }, {[](const At& x) {
         return std::exp(x.a);
       }}},
      {"log", 1, [](const At& x) { return std::log(x.a); }, {[](const At& x) { return 1 / x.a; }}},
      {"sin", 1, [](const At& x) { return std::sin(x.a); }, {[](const At& x) {
         return std::cos(x.a);
       }}},
      {"cos", 1, [](const At& x) { return std::cos(x.a); }, {[](const At& x) {
         return -std::sin(x.a);
       }}},
      {"sign", 1, [](const At& x) { return sign(x.a); }, {zero}},
      {"softplus",
       1,
       [](const At& x) { return std::max(x.a, 0.0) + std::log1p(std::exp(-std::abs(x.a))); },
       {[](const At& x) { return sigmoid(x.a); }}},
      {"erf", 1, [](const At& x) { return std::erf(x.a); }, {[](const At& x) {
         return 2 * std::numbers::inv_sqrtpi * std::exp(-x.a * x.a);
       }}},
      {"relu", 1, [](const At& x) { return x.a < 0 ? 0 : x.a; }, {[](const At& x) {
         return x.a > 0 ? 1.0 : 0.0;
       }}},
      {"leaky_relu",
       1,
       [](const At& x) { return x.a < 0 ? x.value * x.a : x.a; },
       {[](const At& x) { return x.a > 0 ? 1.0 : x.value; }}},
      {"tanh", 1, [](const At& x) { return std::tanh(x.a); }, {[](const At& x) {
         return 1 / (std::cosh(x.a) * std::cosh(x.a));
       }}},
      {"sigmoid", 1, [](const At& x) { return sigmoid(x.a); }, {[](const At& x) {
         return sigmoid(x.a) * sigmoid(-x.a);
       }}},
      {"silu", 1, [](const At& x) { return x.a * sigmoid(x.a); }, {[](const At& x) {
         return sigmoid(x.a) * (1 + x.a * sigmoid(-x.a));
       }}},
      {"gelu", 1, [](const At& x) { return gelu(x.a).value; }, {[](const At& x) {
         return gelu(x.a).slope;
       }}},
      {"gelu_tanh", 1, [](const At& x) { return gelu_tanh(x.a).value; }, {[](const At& x) {
         return gelu_tanh(x.a).slope;
       }}},
      {"add_scalar", 1, [](const At& x) { return x.a + x.value; }, {one}},
      {"mul_scalar", 1, [](const At& x) { return x.a * x.value; }, {[](const At& x) {
         return x.value;
       }}},
      {"pow_scalar", 1, [](const At& x) { return std::pow(x.a, x.value); }, {[](const At& x) {
         return x.value == 0 ? 0 : x.value * std::pow(x.a, x.value - 1);
       }}},
      {"clamp_min", 1, [](const At& x) { return x.a < x.value ? x.value : x.a; }, {[](const At& x) {
         return x.a > x.value ? 1.0 : 0.0;
       }}},
      {"clamp_max", 1, [](const At& x) { return x.a > x.value ? x.value : x.a; }, {[](const At& x) {
         return x.a < x.value ? 1.0 : 0.0;
       }}},

      // From the gradient and the result, then from the gradient and the operand.
      {"relu_grad", 2, [](const At& x) { return x.b > 0 ? x.a : 0; }, {}, false},
      {"tanh_grad", 2, [](const At& x) { return x.a * (1 - x.b * x.b); }, {}, false},
      {"sigmoid_grad", 2, [](const At& x) { return x.a * x.b * (1 - x.b); }, {}, false},
      {"silu_grad",
       2,
       [](const At& x) { return x.a * sigmoid(x.b) * (1 + x.b * sigmoid(-x.b)); },
       {},
       false},
      {"gelu_grad", 2, [](const At& x) { return x.a * gelu(x.b).slope; }, {}, false},
      {"gelu_tanh_grad", 2, [](const At& x) { return x.a * gelu_tanh(x.b).slope; }, {}, false},
      {"leaky_relu_grad", 2, [](const At& x) { return x.b > 0 ? x.a : x.a * x.value; }, {}, false},
  };
  return all;
}

// Calls body(operands, index) for each element of the result.
template <typename Body>
void for_each_element(const Call& call, const Shape& shape, const Body& body) {
  At at;
  at.value = call.attributes().number("value", 0);
  for_each_index(shape, [&](const Index& index) {
    const auto operand = [&](int i) {
      return i < call.count() ? call.in(i).data[offset(call.in(i).shape, index)] : 0;
    };
    at.a = operand(0), at.b = operand(1), at.c = operand(2);
    body(static_cast<const At&>(at), index);
  });
}

Arrays forward(const Element& element, const Call& call) {
  Array y = {call.out_shape(), {}};
  for_each_element(call, y.shape,
                   [&](const At& at, const Index&) { y.data.push_back(element.f(at)); });
  return {y};
}

// A gradient of zero stays zero where the slope is infinite: the loss does not change there.
Arrays backward(const Element& element, const Call& call) {
  Arrays results(call.inputs.size());
  for (int i = 0; i < call.count(); ++i)
    if (element.slopes[i]) results[i] = zeros(call.in(i).shape);
  size_t place = 0;
  for_each_element(call, call.dy().shape, [&](const At& at, const Index& index) {
    const double dy = call.dy().data[place++];
    for (int i = 0; dy != 0 && i < call.count(); ++i)
      if (element.slopes[i])
        results[i].data[offset(results[i].shape, index)] += dy * element.slopes[i](at);
  });
  return results;
}

}  // namespace

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

ValueAndSlope gelu(double x) {
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {x * below, below + x * density};
}

ValueAndSlope gelu_tanh(double x) {
  const double k = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(k * (x + 0.044715 * x * x * x));
  return {0.5 * x * (1 + t),
          0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)};
}

Array through_relu(const Array& gradient, const Array& result) {
  Array masked = gradient;
  for (size_t i = 0; i < masked.data.size(); ++i)
    if (!(result.data[i] > 0)) masked.data[i] = 0;
  return masked;
}

std::vector<Rule> elementwise_rules() {
  std::vector<Rule> rules;
  for (const Element& element : elements()) {
    Rule rule = {element.name, [&](const Call& call) { return forward(element, call); }};
    if (element.differentiable)
      rule.backward = [&](const Call& call) { return backward(element, call); };
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace artel::reference
