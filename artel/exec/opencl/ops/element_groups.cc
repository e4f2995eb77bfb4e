#include "artel/exec/opencl/ops/element_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "artel/base/error.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// The formula of each op, with operands a, b, c and the immediate v. Must match the CPU
// (exec/cpu/elementwise/element_ops.cc).
constexpr std::pair<std::string_view, std::string_view> kOpenClFormulas[] = {
    {"add", "a + b"},
    {"sub", "a - b"},
    {"mul", "a * b"},
    {"div", "a / b"},
    {"maximum", "larger_of(a, b)"},
    {"minimum", "smaller_of(a, b)"},
    {"pow", "pow(a, b)"},
    {"greater", "a > b ? 1.0f : 0.0f"},
    {"equal", "a == b ? 1.0f : 0.0f"},
    {"select", "a == 0 ? c : b"},

    {"neg", "-a"},
    {"abs", "fabs(a)"},
    {"square", "a * a"},
    {"sqrt", "sqrt(a)"},
    {"rsqrt", "1.0f / sqrt(a)"},
    {"reciprocal", "1.0f / a"},
    {"exp", "exp(a)"},
    {"log", "log(a)"},
    {"sin", "sin(a)"},
    {"cos", "cos(a)"},
    {"tanh", "tanh(a)"},
    {"sigmoid", "sigmoid_of(a)"},
    {"relu", "a < 0 ? 0.0f : a"},
    {"gelu", "gelu_of(a)"},
    {"gelu_tanh", "gelu_tanh_of(a)"},
    {"silu", "a * sigmoid_of(a)"},
    {"softplus", "larger_of(a, 0.0f) + log1p(exp(-fabs(a)))"},
    {"erf", "erf(a)"},
    {"sign", "isnan(a) ? a : a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f"},

    {"leaky_relu", "a < 0 ? a * v : a"},
    {"add_scalar", "a + v"},
    {"mul_scalar", "a * v"},
    {"pow_scalar", "pow(a, v)"},
    {"clamp_min", "a < v ? v : a"},
    {"clamp_max", "a > v ? v : a"},

    {"relu_grad", "b > 0 ? a : 0.0f"},
    {"leaky_relu_grad", "b > 0 ? a : a * v"},
    {"gelu_grad", "a * gelu_slope(b)"},
    {"gelu_tanh_grad", "a * gelu_tanh_slope(b)"},
    {"silu_grad", "a * sigmoid_of(b) * (1.0f + b * (1.0f - sigmoid_of(b)))"},
    {"sigmoid_grad", "a * b * (1.0f - b)"},
    {"tanh_grad", "a * (1.0f - b * b)"},
};

const std::string_view* formula_of(std::string_view op) {
  const auto* const found =
      std::ranges::find(kOpenClFormulas, op, [](const auto& entry) { return entry.first; });
  return found == std::end(kOpenClFormulas) ? nullptr : &found->second;
}

// How an operand is addressed over the merged axes.
enum class Addressing { dense, single, strided };

// A group with neighbouring axes merged where all operands allow it.
class MergedGroup {
 public:
  explicit MergedGroup(const ElementGroup& group) : code_(group.code), outputs_(group.outputs) {
    std::vector<ElementGroup::Strides> operands = group.input_strides;
    operands.insert(operands.end(), group.output_strides.begin(), group.output_strides.end());
    strides_.resize(operands.size());
    for (size_t axis = 0; axis < group.extents.size(); ++axis) {
      const int64_t extent = group.extents[axis];
      elements_ *= extent;
      if (extent == 1) continue;
      const auto continues = [&](size_t i) {
        return !extents_.empty() && strides_[i].back() == operands[i][axis] * extent;
      };
      bool merges = !extents_.empty();
      for (size_t i = 0; i < operands.size(); ++i) merges = merges && continues(i);
      for (size_t i = 0; i < operands.size(); ++i) {
        if (merges) strides_[i].pop_back();
        strides_[i].push_back(operands[i][axis]);
      }
      if (merges)
        extents_.back() *= extent;
      else
        extents_.push_back(extent);
    }
    inputs_ = group.input_strides.size();
  }

  int64_t elements() const { return elements_; }

  // The extents of all axes except the first, then the strides of strided operands.
  std::vector<Argument> numbers() const {
    std::vector<Argument> all;
    for (size_t axis = 1; axis < extents_.size(); ++axis) all.emplace_back(extents_[axis]);
    for (const ElementGroup::Strides& each : strides_)
      if (addressing(each) == Addressing::strided)
        for (const int64_t stride : each) all.emplace_back(stride);
    return all;
  }

  std::string source() const {
    std::string parameters, opened, places, values;
    std::string strides;
    for (size_t i = 0; i < strides_.size(); ++i) {
      const bool is_input = i < inputs_;
      const std::string memory = fmt::format("m{}", i);
      parameters += fmt::format(", {}(float, {})", is_input ? "IN" : "OUT", memory);
      opened += fmt::format("  USE_{}(float, {});\n", is_input ? "IN" : "OUT", memory);
      if (addressing(strides_[i]) == Addressing::strided)
        for (size_t axis = 0; axis < extents_.size(); ++axis)
          strides += fmt::format(", int s{}_{}", i, axis);
      if (is_input) values += fmt::format("  const float r{} = {}[{}];\n", i, memory, place_of(i));
    }
    std::string extents;
    for (size_t axis = 1; axis < extents_.size(); ++axis) extents += fmt::format(", int e{}", axis);
    places = "  int rest = i;\n";
    for (size_t axis = extents_.size(); axis-- > 1;)
      places += fmt::format("  const int i{0} = rest % e{0};\n  rest /= e{0};\n", axis);
    places += "  const int i0 = rest;\n";
    for (size_t i = 0; i < code_.size(); ++i) values += instruction(i);
    for (size_t i = 0; i < outputs_.size(); ++i)
      values += fmt::format("  m{}[{}] = r{};\n", inputs_ + i, place_of(inputs_ + i), outputs_[i]);
    return fmt::format(
        "__kernel void group(int n{}{}{}) {{\n  const int i = get_global_id(0);\n  if (i >= n) "
        "return;\n{}{}{}}}\n",
        parameters, extents, strides, opened, places, values);
  }

 private:
  Addressing addressing(const ElementGroup::Strides& strides) const {
    if (std::ranges::all_of(strides, [](int64_t stride) { return stride == 0; }))
      return Addressing::single;
    return strides.size() == 1 && strides[0] == 1 ? Addressing::dense : Addressing::strided;
  }

  std::string place_of(size_t operand) const {
    switch (addressing(strides_[operand])) {
      case Addressing::dense:
        return "i";
      case Addressing::single:
        return "0";
      case Addressing::strided:
        break;
    }
    std::string sum;
    for (size_t axis = 0; axis < extents_.size(); ++axis)
      sum += fmt::format("{}i{} * s{}_{}", axis == 0 ? "" : " + ", axis, operand, axis);
    return sum;
  }

  // Each instruction has its own scope, which defines the operand names of the formulas.
  std::string instruction(size_t number) const {
    const ElementGroup::Instruction& code = code_[number];
    constexpr std::array kNames = {'a', 'b', 'c'};
    std::string operands;
    for (size_t i = 0; i < code.operands.size(); ++i)
      operands += fmt::format("const float {} = r{}; ", kNames[i], code.operands[i]);
    return fmt::format("  float r{0};\n  {{ {1}const float v = {2}; r{0} = {3}; }}\n",
                       inputs_ + number, operands, literal(code.immediate), *formula_of(code.op));
  }

  // An exact literal. Infinities and NaN need names.
  static std::string literal(float value) {
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
    return fmt::format("{:a}f", value);
  }

  std::vector<ElementGroup::Instruction> code_;
  std::vector<int> outputs_;
  std::vector<int64_t> extents_;
  std::vector<ElementGroup::Strides> strides_;  // inputs, then outputs
  size_t inputs_ = 0;
  int64_t elements_ = 1;
};

}  // namespace

bool has_formula(std::string_view op) { return formula_of(op) != nullptr; }

Kernel make_element_group(const ElementGroup& group, Device& on) {
  OpenClDevice& device = device_of(on);
  const MergedGroup merged(group);
  const BuiltKernel kernel = device.kernel(merged.source(), "group");
  const std::vector<Argument> numbers = merged.numbers();
  const int64_t n = merged.elements();
  return {{}, 0, [=, &device](const KernelRun& run) {
            std::vector<Argument> arguments = {n};
            for (const std::byte* input : run.inputs) arguments.emplace_back(input);
            for (const std::byte* output : run.outputs) arguments.emplace_back(output);
            arguments.insert(arguments.end(), numbers.begin(), numbers.end());
            device.run(kernel, items(n), arguments);
          }};
}

}  // namespace artel::opencl
