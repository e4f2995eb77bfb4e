// Element-wise ops. Chains of them become one pass over memory (exec/plan/element_groups.h).
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/ops/shared.h"

namespace artel {
namespace {

using Gradient = std::function<Value(GradientContext&, Value dy)>;

std::vector<TensorType> infer_broadcast(const InferContext& context) {
  Shape shape = context.shape(0);
  for (int i = 1; i < context.inputs(); ++i) {
    try {
      shape = broadcast(shape, context.shape(i));
    } catch (const Error& error) {
      context.reject(error.what());
    }
  }
  for (int i = 0; i < context.inputs(); ++i)
    context.check(context.type(i).dtype == DType::f32, "got an input of type {}, expected f32",
                  to_string(context.type(i).dtype));
  return {{DType::f32, shape}};
}

OpDefinition element_op(std::string name, int inputs, std::vector<Gradient> gradients) {
  OpDefinition op;
  op.name = std::move(name);
  op.elementwise = true;
  op.infer = [inputs](const InferContext& context) {
    context.check_inputs(inputs, inputs);
    return infer_broadcast(context);
  };
  if (gradients.empty()) return op;
  op.gradient = [gradients = std::move(gradients)](GradientContext& context) {
    std::vector<Value> results(context.inputs());
    for (int i = 0; i < context.inputs(); ++i)
      if (context.needs(i) && gradients[i])
        results[i] = sum_to(gradients[i](context, context.gradient()), context.input(i).shape());
    return results;
  };
  return op;
}

Value x(GradientContext& context) { return context.input(0); }
Value y(GradientContext& context) { return context.output(); }

// A gradient op of two inputs (dy and x, or dy and y) that carries the node's attributes along.
Gradient gradient_of(const char* op, bool from_output) {
  return [op, from_output](GradientContext& context, Value dy) {
    return context.graph().add_one(op, {dy, from_output ? y(context) : x(context)},
                                   context.attributes());
  };
}

Value scalar_of(GradientContext& context, const char* op, Value v, double c) {
  return context.graph().add_one(op, {v}, {{"value", c}});
}

// 1 where input i was chosen by maximum or minimum. A tie counts for the first input only.
Gradient chosen(int input, bool maximum) {
  return [input, maximum](GradientContext& context, Value dy) {
    const Value a = context.input(0), b = context.input(1);
    const Value second = maximum ? greater(b, a) : greater(a, b);
    return mul(dy, input == 1 ? second : add_scalar(mul_scalar(second, -1), 1));
  };
}

}  // namespace

std::vector<OpDefinition> elementwise_ops() {
  using C = GradientContext;
  std::vector<OpDefinition> ops;
  const auto binary = [&](const char* name, Gradient a, Gradient b) {
    ops.push_back(element_op(name, 2, {std::move(a), std::move(b)}));
  };
  const auto unary = [&](const char* name, Gradient gradient) {
    ops.push_back(element_op(name, 1, {std::move(gradient)}));
  };
  const auto activation = [&](const char* name, Gradient gradient) {
    unary(name, std::move(gradient));
    ops.back().activation = true;
  };
  const auto plain = [&](const char* name, int inputs) {
    ops.push_back(element_op(name, inputs, {}));
  };
  const Gradient pass = [](C&, Value dy) { return dy; };

  binary("add", pass, pass);
  binary("sub", pass, [](C&, Value dy) { return artel::unary("neg", dy); });
  binary(
      "mul", [](C& c, Value dy) { return mul(dy, c.input(1)); },
      [](C& c, Value dy) { return mul(dy, c.input(0)); });
  binary(
      "div", [](C& c, Value dy) { return div(dy, c.input(1)); },
      [](C& c, Value dy) { return artel::unary("neg", div(mul(dy, y(c)), c.input(1))); });
  binary("maximum", chosen(0, true), chosen(1, true));
  binary("minimum", chosen(0, false), chosen(1, false));
  // 0^0 is 1, with zero derivatives in both arguments; 0^b with b > 0 has a zero derivative in the
  // exponent.
  binary(
      "pow",
      [](C& c, Value dy) {
        const Value slope = mul(c.input(1), pow(c.input(0), add_scalar(c.input(1), -1)));
        return mul(dy, select(c.input(1), slope, mul_scalar(c.input(1), 0)));
      },
      [](C& c, Value dy) {
        const Value slope = mul(y(c), artel::unary("log", c.input(0)));
        return mul(dy, select(c.input(0), slope, mul_scalar(c.input(0), 0)));
      });
  plain("greater", 2);
  plain("equal", 2);
  ops.push_back(
      element_op("select", 3,
                 {nullptr, [](C& c, Value dy) { return select(c.input(0), dy, mul_scalar(dy, 0)); },
                  [](C& c, Value dy) { return select(c.input(0), mul_scalar(dy, 0), dy); }}));

  unary("neg", [](C&, Value dy) { return artel::unary("neg", dy); });
  unary("abs", [](C& c, Value dy) { return mul(dy, artel::unary("sign", x(c))); });
  unary("square", [](C& c, Value dy) { return mul(mul_scalar(dy, 2), x(c)); });
  unary("sqrt", [](C& c, Value dy) { return div(mul_scalar(dy, 0.5), y(c)); });
  unary("rsqrt", [](C& c, Value dy) {
    return mul(mul_scalar(dy, -0.5), mul(y(c), artel::unary("square", y(c))));
  });
  unary("exp", [](C& c, Value dy) { return mul(dy, y(c)); });
  unary("log", [](C& c, Value dy) { return div(dy, x(c)); });
  unary("sin", [](C& c, Value dy) { return mul(dy, artel::unary("cos", x(c))); });
  unary("cos",
        [](C& c, Value dy) { return artel::unary("neg", mul(dy, artel::unary("sin", x(c)))); });
  unary("reciprocal",
        [](C& c, Value dy) { return artel::unary("neg", mul(dy, artel::unary("square", y(c)))); });
  unary("sign", [](C&, Value dy) { return mul_scalar(dy, 0); });
  activation("softplus", [](C& c, Value dy) { return mul(dy, artel::unary("sigmoid", x(c))); });
  unary("erf", [](C& c, Value dy) {  // 2 / sqrt(pi) exp(-x^2)
    const Value bell = artel::unary("exp", artel::unary("neg", artel::unary("square", x(c))));
    return mul(dy, mul_scalar(bell, 1.1283791670955126));
  });
  activation("relu", gradient_of("relu_grad", true));
  activation("tanh", gradient_of("tanh_grad", true));
  activation("sigmoid", gradient_of("sigmoid_grad", true));
  activation("silu", gradient_of("silu_grad", false));
  activation("gelu", gradient_of("gelu_grad", false));
  activation("gelu_tanh", gradient_of("gelu_tanh_grad", false));
  unary("leaky_relu", gradient_of("leaky_relu_grad", false));
  for (const char* name : {"relu_grad", "tanh_grad", "sigmoid_grad", "silu_grad", "gelu_grad",
                           "gelu_tanh_grad", "leaky_relu_grad"})
    plain(name, 2);

  unary("add_scalar", pass);
  unary("mul_scalar", [](C& c, Value dy) {
    return scalar_of(c, "mul_scalar", dy, c.attributes().number("value"));
  });
  unary("pow_scalar", [](C& c, Value dy) {
    const double exponent = c.attributes().number("value");
    if (exponent == 0) return mul_scalar(dy, 0);
    return mul(dy, mul_scalar(pow_scalar(x(c), exponent - 1), exponent));
  });
  // 1 strictly inside the bound, else 0.
  unary("clamp_min", [](C& c, Value dy) {
    const Value above = add_scalar(x(c), -c.attributes().number("value"));
    return mul(dy, relu(artel::unary("sign", above)));
  });
  unary("clamp_max", [](C& c, Value dy) {
    const Value below = add_scalar(artel::unary("neg", x(c)), c.attributes().number("value"));
    return mul(dy, relu(artel::unary("sign", below)));
  });
  return ops;
}

Value add(Value a, Value b) { return a.graph().add_one("add", {a, b}); }
Value sub(Value a, Value b) { return a.graph().add_one("sub", {a, b}); }
Value mul(Value a, Value b) { return a.graph().add_one("mul", {a, b}); }
Value div(Value a, Value b) { return a.graph().add_one("div", {a, b}); }
Value maximum(Value a, Value b) { return a.graph().add_one("maximum", {a, b}); }
Value minimum(Value a, Value b) { return a.graph().add_one("minimum", {a, b}); }
Value pow(Value a, Value b) { return a.graph().add_one("pow", {a, b}); }
Value greater(Value a, Value b) { return a.graph().add_one("greater", {a, b}); }
Value equal(Value a, Value b) { return a.graph().add_one("equal", {a, b}); }
Value select(Value condition, Value a, Value b) {
  return condition.graph().add_one("select", {condition, a, b});
}
Value add_scalar(Value x, double c) { return x.graph().add_one("add_scalar", {x}, {{"value", c}}); }
Value mul_scalar(Value x, double c) { return x.graph().add_one("mul_scalar", {x}, {{"value", c}}); }
Value pow_scalar(Value x, double c) { return x.graph().add_one("pow_scalar", {x}, {{"value", c}}); }
Value clamp_min(Value x, double low) {
  return x.graph().add_one("clamp_min", {x}, {{"value", low}});
}
Value clamp_max(Value x, double high) {
  return x.graph().add_one("clamp_max", {x}, {{"value", high}});
}
Value unary(std::string_view op, Value x) { return x.graph().add_one(op, {x}); }
Value relu(Value x) { return unary("relu", x); }
Value leaky_relu(Value x, double slope) {
  return x.graph().add_one("leaky_relu", {x}, {{"value", slope}});
}
Value operator+(Value a, Value b) { return add(a, b); }
Value operator-(Value a, Value b) { return sub(a, b); }
Value operator*(Value a, Value b) { return mul(a, b); }
Value operator/(Value a, Value b) { return div(a, b); }

}  // namespace artel
