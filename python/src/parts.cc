// Losses, metrics, and layers that are written in Python: functions that build a part of the graph,
// once for each program that is compiled. No Python runs while a step is computed.
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"
#include "artel/nn/loss.h"
#include "artel/nn/metric.h"
#include "artel/nn/parse_layers.h"
#include "interop.h"

namespace artel::python {
namespace {

// The current Python function with this name. A notebook may redefine it.
nb::object function_of(const std::string& kind, const std::string& name) {
  return nb::module_::import_("artel._parts").attr("functions")[nb::make_tuple(kind, name)];
}

WeightedMean to_loss(const nb::object& result) {
  if (!nb::isinstance<nb::tuple>(result)) return nb::cast<Value>(result);
  return {nb::cast<Value>(result[0]), nb::cast<Value>(result[1])};
}

void define_loss(const std::string& name) {
  register_loss(name, [name](Value prediction, Value target) {
    return with_python("loss " + name,
                       [&] { return to_loss(function_of("loss", name)(prediction, target)); });
  });
}

void define_metric(const std::string& name, bool less_is_better) {
  const auto sums = [name](Value prediction, Value target) {
    return with_python("metric " + name, [&] {
      const nb::object result = function_of("metric", name)(prediction, target);
      return metric_sums(nb::cast<Value>(result[0]), nb::cast<int64_t>(result[1]));
    });
  };
  register_metric({.name = name, .sums = sums, .value = ratio, .less_is_better = less_is_better});
}

void define_layer(const std::string& name) {
  nn::register_layer(name, "[WORD ...]", [name](nn::LayerWords& words) {
    std::vector<std::string> rest;
    while (words.more()) rest.push_back(words.take("a word"));
    return nn::Layer(name, [name, rest](nn::Build& build, Value x) {
      return with_python("layer " + name, [&] {
        return nb::cast<Value>(function_of("layer", name)(
            nb::cast(&build, nb::rv_policy::reference), x, *nb::cast(rest)));
      });
    });
  });
}

// Adapts a loss to weighted samples. The last number of each target is the weight; the numbers
// before it are values or class probabilities.
Loss weighted(Value (*loss_of_rows)(Value prediction, Value target)) {
  return [loss_of_rows](Value prediction, Value target) {
    const int64_t numbers = target.shape().back() - 1;
    const Value weights = slice(target, 1, numbers, numbers + 1);
    const Value rows = loss_of_rows(reshape(prediction, {target.shape()[0], numbers}),
                                    slice(target, 1, 0, numbers));
    return WeightedMean(mean(mul(weights, rows)), mean(weights));
  };
}

Value cross_entropy_of_rows(Value prediction, Value target) {
  return mul_scalar(sum(mul(log_softmax(prediction), target), {1}, true), -1);
}

Value squared_error_of_rows(Value prediction, Value target) {
  return mean(unary("square", sub(prediction, target)), {1}, true);
}

// A tensor of the shape of `like` filled with a number. The comparison gives 0 for each element,
// also for infinity, whose product with 0 would be NaN.
Value constant_like(Value like, double number) { return add_scalar(greater(like, like), number); }

// Between two values, and with `reversed` between a number and a value.
template <typename Op>
void add_operator(nb::class_<Value>& type, const char* name, const char* reversed, Op op) {
  type.def(
      name, [op](Value a, Value b) { return op(a, b); }, nb::is_operator());
  if (reversed)
    type.def(
        reversed, [op](Value a, double b) { return op(constant_like(a, b), a); },
        nb::is_operator());
}

// Between a value and a value or a number.
template <typename Op>
void add_comparison(nb::class_<Value>& type, const char* name, Op op) {
  add_operator(type, name, nullptr, op);
  type.def(
      name, [op](Value a, double b) { return op(a, constant_like(a, b)); }, nb::is_operator());
}

void add_values(nb::module_& module) {
  nb::class_<Value> type(
      module, "Value", "A value of a network under construction: it has a shape, but no numbers.");
  type.def_prop_ro("shape",
                   [](const Value& value) { return nb::tuple(nb::cast(value.shape().extents())); })
      .def("__neg__", [](Value x) { return mul_scalar(x, -1); })
      .def(
          "__add__", [](Value a, double b) { return add_scalar(a, b); }, nb::is_operator())
      .def(
          "__radd__", [](Value a, double b) { return add_scalar(a, b); }, nb::is_operator())
      .def(
          "__sub__", [](Value a, double b) { return add_scalar(a, -b); }, nb::is_operator())
      .def(
          "__mul__", [](Value a, double b) { return mul_scalar(a, b); }, nb::is_operator())
      .def(
          "__rmul__", [](Value a, double b) { return mul_scalar(a, b); }, nb::is_operator())
      .def(
          "__truediv__", [](Value a, double b) { return mul_scalar(a, 1 / b); }, nb::is_operator())
      .def(
          "__pow__", [](Value a, double b) { return pow_scalar(a, b); }, nb::is_operator())
      .def(
          "__matmul__", [](Value a, Value b) { return matmul(a, b); }, nb::is_operator())
      .def("__repr__", [](const Value& value) {
        return fmt::format("artel.Value({})", to_string(value.type()));
      });
  add_operator(type, "__add__", nullptr, [](Value a, Value b) { return add(a, b); });
  add_operator(type, "__sub__", "__rsub__", [](Value a, Value b) { return sub(a, b); });
  add_operator(type, "__mul__", nullptr, [](Value a, Value b) { return mul(a, b); });
  add_operator(type, "__truediv__", "__rtruediv__", [](Value a, Value b) { return div(a, b); });
  add_comparison(type, "__gt__", [](Value a, Value b) { return greater(a, b); });
  add_comparison(type, "__lt__", [](Value a, Value b) { return greater(b, a); });
}

void add_ops(nb::module_ ops) {
  for (const char* name :
       {"neg", "abs", "square", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid",
        "relu", "silu", "softplus", "erf", "sign", "reciprocal", "gelu"})
    ops.def(
        name, [name](Value x) { return unary(name, x); }, nb::arg("x"));
  ops.def("maximum", maximum).def("minimum", minimum).def("equal", equal).def("select", select);
  ops.def("softmax", artel::softmax).def("log_softmax", artel::log_softmax);
  ops.def("argmax", argmax).def("one_hot", one_hot).def("flatten", artel::flatten);
  ops.def("matmul", [](Value a, Value b) { return matmul(a, b); });
  ops.def("reshape", [](Value x, std::vector<int64_t> shape) { return reshape(x, Shape(shape)); });
  ops.def("transpose", [](Value x, std::vector<int64_t> axes) { return transpose(x, axes); });
  ops.def("concat", concat).def("slice", artel::slice);
  for (const auto& [name, reduction] :
       {std::pair{"sum", Reduction::sum}, std::pair{"mean", Reduction::mean},
        std::pair{"max", Reduction::max}, std::pair{"min", Reduction::min}})
    ops.def(
        name,
        [reduction](Value x, std::vector<int64_t> axes, bool keep) {
          return reduce(reduction, x, std::move(axes), keep);
        },
        nb::arg("x"), nb::arg("axes") = std::vector<int64_t>(), nb::arg("keep") = false);
  ops.def("cross_entropy",
          [](Value scores, Value labels) { return cross_entropy(scores, labels); });
  ops.def("mean_squared_error", mean_squared_error).def("l1_loss", l1_loss);
  ops.def("binary_cross_entropy", binary_cross_entropy);
  ops.def("dropout", artel::dropout);
}

void add_build(nb::module_& module) {
  nb::class_<nn::Build>(module, "Build", "A network under construction, as layers see it.")
      .def_prop_ro("training", &nn::Build::training)
      .def(
          "parameter",
          [](nn::Build& build, const std::string& name, const std::vector<int64_t>& shape,
             std::optional<double> initial) {
            return build.parameter(
                name, Shape(shape),
                initial ? nn::constant(static_cast<float>(*initial)) : nn::fan_in_uniform());
          },
          nb::arg("name"), nb::arg("shape"), nb::arg("initial") = nb::none(),
          "A trained parameter that begins with a number, or at random.")
      .def(
          "__call__",
          [](nn::Build& build, const std::string& name, const std::string& layer, Value x) {
            return nn::named(name, nn::parse_layers({layer}))(build, x);
          },
          nb::arg("name"), nb::arg("layer"), nb::arg("x"),
          "Applies a layer, given as text, under a name.");
}

}  // namespace

void add_parts(nb::module_& module) {
  add_values(module);
  add_ops(module.def_submodule("ops", "Operations on values of a network under construction."));
  add_build(module);
  module.def("define_loss", define_loss);
  module.def("define_metric", define_metric);
  module.def("define_layer", define_layer);
  register_loss("weighted_cross_entropy", weighted(cross_entropy_of_rows));
  register_loss("weighted_mse", weighted(squared_error_of_rows));
}

}  // namespace artel::python
