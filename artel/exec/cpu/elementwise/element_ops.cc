#include "artel/exec/cpu/elementwise/element_ops.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/elementwise/element_ops.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/element_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// The operands of one instruction, and its immediate.
struct Operands {
  const float* a;
  const float* b;
  const float* c;
  float* out;
  int64_t n;
  float immediate;
};

// Applies a formula to all elements. It takes the immediate, then one to three operands: vectors
// after their tag, or plain floats.
template <class F>
void run_formula(const Operands& x) {
  const F f;
  if constexpr (std::is_invocable_v<F, float, float>) {
    for (int64_t i = 0; i < x.n; ++i) x.out[i] = f(x.immediate, x.a[i]);
  } else if constexpr (std::is_invocable_v<F, float, float, float>) {
    for (int64_t i = 0; i < x.n; ++i) x.out[i] = f(x.immediate, x.a[i], x.b[i]);
  } else {
    const Tag d;
    const auto step = static_cast<int64_t>(hn::Lanes(d));
    const auto load = [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
    for (int64_t i = 0; i < x.n; i += step) {
      if constexpr (std::is_invocable_v<F, Tag, float, Vector>) {
        hn::StoreU(f(d, x.immediate, load(x.a + i)), d, x.out + i);
      } else if constexpr (std::is_invocable_v<F, Tag, float, Vector, Vector>) {
        hn::StoreU(f(d, x.immediate, load(x.a + i), load(x.b + i)), d, x.out + i);
      } else {
        hn::StoreU(f(d, x.immediate, load(x.a + i), load(x.b + i), load(x.c + i)), d, x.out + i);
      }
    }
  }
}

template <class F>
constexpr int operands_of() {
  if (std::is_invocable_v<F, Tag, float, Vector> || std::is_invocable_v<F, float, float>) return 1;
  return std::is_invocable_v<F, Tag, float, Vector, Vector, Vector> ? 3 : 2;
}

struct Formula {
  std::string_view name;
  int operands;
  void (*run)(const Operands&);

  template <class F>
  constexpr Formula(std::string_view called, F)
      : name(called), operands(operands_of<F>()), run(run_formula<F>) {}
};

HWY_INLINE Vector zero_or_one(Tag d, hn::Mask<Tag> mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0f));
}

// NaN if either is NaN, else `result`.
HWY_INLINE Vector keep_nan(Tag d, Vector a, Vector b, Vector result) {
  return keep_nan(d, a, keep_nan(d, b, result));
}

// All ops by the names that they have in graphs.
constexpr Formula kFormulas[] = {
    {"add", [](Tag, float, Vector a, Vector b) HWY_ATTR { return hn::Add(a, b); }},
    {"sub", [](Tag, float, Vector a, Vector b) HWY_ATTR { return hn::Sub(a, b); }},
    {"mul", [](Tag, float, Vector a, Vector b) HWY_ATTR { return hn::Mul(a, b); }},
    {"div", [](Tag, float, Vector a, Vector b) HWY_ATTR { return hn::Div(a, b); }},
    {"maximum",
     [](Tag d, float, Vector a, Vector b) HWY_ATTR { return keep_nan(d, a, b, hn::Max(a, b)); }},
    {"minimum",
     [](Tag d, float, Vector a, Vector b) HWY_ATTR { return keep_nan(d, a, b, hn::Min(a, b)); }},
    {"pow", [](float, float a, float b) { return std::pow(a, b); }},
    // Comparisons give 0 or 1.
    {"greater",
     [](Tag d, float, Vector a, Vector b) HWY_ATTR { return zero_or_one(d, hn::Gt(a, b)); }},
    {"equal",
     [](Tag d, float, Vector a, Vector b) HWY_ATTR { return zero_or_one(d, hn::Eq(a, b)); }},
    {"select", [](Tag d, float, Vector a, Vector b, Vector c)
                   HWY_ATTR { return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), c, b); }},

    {"neg", [](Tag, float, Vector a) HWY_ATTR { return hn::Neg(a); }},
    {"abs", [](Tag, float, Vector a) HWY_ATTR { return hn::Abs(a); }},
    {"square", [](Tag, float, Vector a) HWY_ATTR { return hn::Mul(a, a); }},
    {"sqrt", [](Tag, float, Vector a) HWY_ATTR { return hn::Sqrt(a); }},
    {"rsqrt",
     [](Tag d, float, Vector a) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(a)); }},
    {"reciprocal", [](Tag d, float, Vector a) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), a); }},
    {"exp", [](Tag d, float, Vector a) HWY_ATTR { return exp(d, a); }},
    {"log", [](Tag d, float, Vector a) HWY_ATTR { return log(d, a); }},
    {"sin", [](Tag d, float, Vector a) HWY_ATTR { return hn::Sin(d, a); }},
    {"cos", [](Tag d, float, Vector a) HWY_ATTR { return hn::Cos(d, a); }},
    {"tanh", [](Tag d, float, Vector a) HWY_ATTR { return tanh(d, a); }},
    {"sigmoid", [](Tag d, float, Vector a) HWY_ATTR { return sigmoid(d, a); }},
    {"relu",
     [](Tag d, float, Vector a) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(a, hn::Zero(d)), a); }},
    {"gelu", [](Tag d, float, Vector a) HWY_ATTR { return gelu_exact(d, a).value; }},
    {"gelu_tanh", [](Tag d, float, Vector a) HWY_ATTR { return gelu_tanh(d, a).value; }},
    {"silu", [](Tag d, float, Vector a) HWY_ATTR { return hn::Mul(a, sigmoid(d, a)); }},
    {"softplus", [](Tag d, float, Vector a) HWY_ATTR { return softplus(d, a); }},
    {"erf", [](Tag d, float, Vector a) HWY_ATTR { return erf(d, a); }},
    {"sign", [](Tag d, float, Vector a) HWY_ATTR { return sign(d, a); }},

    // With an immediate.
    {"leaky_relu",
     [](Tag d, float slope, Vector a) HWY_ATTR {
       return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, hn::Set(d, slope)), a);
     }},
    {"add_scalar",
     [](Tag d, float value, Vector a) HWY_ATTR { return hn::Add(a, hn::Set(d, value)); }},
    {"mul_scalar",
     [](Tag d, float value, Vector a) HWY_ATTR { return hn::Mul(a, hn::Set(d, value)); }},
    {"pow_scalar", [](float exponent, float a) { return std::pow(a, exponent); }},
    {"clamp_min",
     [](Tag d, float low, Vector a)
         HWY_ATTR {
           const auto bound = hn::Set(d, low);
           return hn::IfThenElse(hn::Lt(a, bound), bound, a);
         }},
    {"clamp_max",
     [](Tag d, float high, Vector a)
         HWY_ATTR {
           const auto bound = hn::Set(d, high);
           return hn::IfThenElse(hn::Gt(a, bound), bound, a);
         }},

    // Gradients: of the result y or of the argument x.
    {"relu_grad", [](Tag d, float, Vector dy, Vector y)
                      HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy); }},
    {"leaky_relu_grad",
     [](Tag d, float slope, Vector dy, Vector x)
         HWY_ATTR {
           return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), dy, hn::Mul(dy, hn::Set(d, slope)));
         }},
    {"gelu_grad", [](Tag d, float, Vector dy, Vector x)
                      HWY_ATTR { return hn::Mul(dy, gelu_exact(d, x).slope); }},
    {"gelu_tanh_grad",
     [](Tag d, float, Vector dy, Vector x) HWY_ATTR { return hn::Mul(dy, gelu_tanh(d, x).slope); }},
    {"silu_grad",
     [](Tag d, float, Vector dy, Vector x)
         HWY_ATTR { return hn::Mul(dy, gated_slope(d, x, sigmoid(d, x), hn::Set(d, 1.0f))); }},
    {"sigmoid_grad",
     [](Tag d, float, Vector dy, Vector y)
         HWY_ATTR { return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(d, 1.0f), y))); }},
    {"tanh_grad", [](Tag d, float, Vector dy, Vector y)
                      HWY_ATTR { return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(d, 1.0f))); }},
};

// Returns -1 if not found.
int find_formula(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kFormulas), std::end(kFormulas),
                   [&](const Formula& formula) { return formula.name == name; });
  return found == std::end(kFormulas) ? -1 : static_cast<int>(found - std::begin(kFormulas));
}

int operands_at(int formula) { return kFormulas[formula].operands; }

void run_block(const ElementInstruction* code, int count, int inputs, float* const* registers,
               int64_t elements) {
  const int64_t n = (elements + kElementPad - 1) / kElementPad * kElementPad;
  const auto at = [&](int index) { return index < 0 ? nullptr : registers[index]; };
  for (int i = 0; i < count; ++i) {
    const ElementInstruction& instruction = code[i];
    const Operands x = {
        at(instruction.a),    at(instruction.b), at(instruction.c), registers[inputs + i], n,
        instruction.immediate};
    if (instruction.op == ElementOp::custom) {
      (*instruction.function)(x.a, x.b, x.c, x.out, elements);
    } else {
      kFormulas[static_cast<int>(instruction.op)].run(x);
    }
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(run_block);

std::optional<ElementOp> find_element_op(std::string_view name) {
  const int found = HWY_STATIC_DISPATCH(find_formula)(name);
  return found < 0 ? std::nullopt : std::optional(static_cast<ElementOp>(found));
}

int operand_count(const ElementInstruction& instruction) {
  if (instruction.op != ElementOp::custom)
    return HWY_STATIC_DISPATCH(operands_at)(static_cast<int>(instruction.op));
  return (instruction.a >= 0) + (instruction.b >= 0) + (instruction.c >= 0);
}

void run_instructions(const ElementInstruction* code, int count, int inputs,
                      float* const* registers, int64_t n) {
  HWY_DYNAMIC_DISPATCH(run_block)(code, count, inputs, registers, n);
}

}  // namespace artel::kernels
#endif
