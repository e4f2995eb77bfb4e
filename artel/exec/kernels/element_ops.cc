#include "artel/exec/kernels/element_ops.h"

#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/kernels/element_ops.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/kernels/element_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

// The operands of one instruction. `map` applies a function of one to three vectors to a block.
struct Operands {
  const float* a;
  const float* b;
  const float* c;
  float* out;
  int64_t n;

  template <class F>
  HWY_INLINE void map(const F& f) const {
    const Tag d;
    const auto step = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < n; i += step) {
      if constexpr (std::is_invocable_v<F, Tag, Vector>) {
        hn::StoreU(f(d, hn::LoadU(d, a + i)), d, out + i);
      } else if constexpr (std::is_invocable_v<F, Tag, Vector, Vector>) {
        hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
      } else {
        hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, c + i)), d, out + i);
      }
    }
  }
};

HWY_INLINE Vector zero_or_one(Tag d, hn::Mask<Tag> mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0f));
}

// NaN if either is NaN, else `result`.
HWY_INLINE Vector keep_nan(Tag d, Vector a, Vector b, Vector result) {
  return keep_nan(d, a, keep_nan(d, b, result));
}

void run_binary(const ElementInstruction& instruction, const Operands& x) {
  switch (instruction.op) {
    case ElementOp::add:
      return x.map([](Tag, Vector a, Vector b) HWY_ATTR { return hn::Add(a, b); });
    case ElementOp::sub:
      return x.map([](Tag, Vector a, Vector b) HWY_ATTR { return hn::Sub(a, b); });
    case ElementOp::mul:
      return x.map([](Tag, Vector a, Vector b) HWY_ATTR { return hn::Mul(a, b); });
    case ElementOp::div:
      return x.map([](Tag, Vector a, Vector b) HWY_ATTR { return hn::Div(a, b); });
    case ElementOp::maximum:
      return x.map([](Tag d, Vector a, Vector b)
                       HWY_ATTR { return keep_nan(d, a, b, hn::Max(a, b)); });
    case ElementOp::minimum:
      return x.map([](Tag d, Vector a, Vector b)
                       HWY_ATTR { return keep_nan(d, a, b, hn::Min(a, b)); });
    case ElementOp::pow:
      for (int64_t i = 0; i < x.n; ++i) x.out[i] = std::pow(x.a[i], x.b[i]);
      return;
    case ElementOp::greater:
      return x.map([](Tag d, Vector a, Vector b) HWY_ATTR { return zero_or_one(d, hn::Gt(a, b)); });
    default:  // equal
      return x.map([](Tag d, Vector a, Vector b) HWY_ATTR { return zero_or_one(d, hn::Eq(a, b)); });
  }
}

void run_unary(const ElementInstruction& instruction, const Operands& x) {
  switch (instruction.op) {
    case ElementOp::neg:
      return x.map([](Tag, Vector a) HWY_ATTR { return hn::Neg(a); });
    case ElementOp::abs:
      return x.map([](Tag, Vector a) HWY_ATTR { return hn::Abs(a); });
    case ElementOp::square:
      return x.map([](Tag, Vector a) HWY_ATTR { return hn::Mul(a, a); });
    case ElementOp::sqrt:
      return x.map([](Tag, Vector a) HWY_ATTR { return hn::Sqrt(a); });
    case ElementOp::rsqrt:
      return x.map([](Tag d, Vector a) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(a)); });
    case ElementOp::reciprocal:
      return x.map([](Tag d, Vector a) HWY_ATTR { return hn::Div(hn::Set(d, 1.0f), a); });
    case ElementOp::exp:
      return x.map([](Tag d, Vector a) HWY_ATTR { return exp(d, a); });
    case ElementOp::log:
      return x.map([](Tag d, Vector a) HWY_ATTR { return log(d, a); });
    case ElementOp::sin:
      return x.map([](Tag d, Vector a) HWY_ATTR { return hn::Sin(d, a); });
    case ElementOp::cos:
      return x.map([](Tag d, Vector a) HWY_ATTR { return hn::Cos(d, a); });
    case ElementOp::tanh:
      return x.map([](Tag d, Vector a) HWY_ATTR { return tanh(d, a); });
    case ElementOp::sigmoid:
      return x.map([](Tag d, Vector a) HWY_ATTR { return sigmoid(d, a); });
    case ElementOp::relu:
      return x.map([](Tag d, Vector a)
                       HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(a, hn::Zero(d)), a); });
    case ElementOp::gelu_exact:
      return x.map([](Tag d, Vector a) HWY_ATTR { return gelu_exact(d, a).value; });
    case ElementOp::gelu_tanh:
      return x.map([](Tag d, Vector a) HWY_ATTR { return gelu_tanh(d, a).value; });
    case ElementOp::silu:
      return x.map([](Tag d, Vector a) HWY_ATTR { return hn::Mul(a, sigmoid(d, a)); });
    case ElementOp::softplus:
      return x.map([](Tag d, Vector a) HWY_ATTR { return softplus(d, a); });
    case ElementOp::erf:
      return x.map([](Tag d, Vector a) HWY_ATTR { return erf(d, a); });
    default:  // sign
      return x.map([](Tag d, Vector a) HWY_ATTR { return sign(d, a); });
  }
}

void run_with_immediate(const ElementInstruction& instruction, const Operands& x) {
  const float value = instruction.immediate;
  switch (instruction.op) {
    case ElementOp::leaky_relu:
      return x.map([value](Tag d, Vector a) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(a, hn::Zero(d)), hn::Mul(a, hn::Set(d, value)), a);
      });
    case ElementOp::add_scalar:
      return x.map([value](Tag d, Vector a) HWY_ATTR { return hn::Add(a, hn::Set(d, value)); });
    case ElementOp::mul_scalar:
      return x.map([value](Tag d, Vector a) HWY_ATTR { return hn::Mul(a, hn::Set(d, value)); });
    case ElementOp::pow_scalar:
      for (int64_t i = 0; i < x.n; ++i) x.out[i] = std::pow(x.a[i], value);
      return;
    case ElementOp::clamp_min:
      return x.map([value](Tag d, Vector a) HWY_ATTR {
        const auto bound = hn::Set(d, value);
        return hn::IfThenElse(hn::Lt(a, bound), bound, a);
      });
    default:  // clamp_max
      return x.map([value](Tag d, Vector a) HWY_ATTR {
        const auto bound = hn::Set(d, value);
        return hn::IfThenElse(hn::Gt(a, bound), bound, a);
      });
  }
}

void run_gradient(const ElementInstruction& instruction, const Operands& x) {
  const float value = instruction.immediate;
  switch (instruction.op) {
    case ElementOp::relu_grad:
      return x.map([](Tag d, Vector dy, Vector y)
                       HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy); });
    case ElementOp::leaky_relu_grad:
      return x.map([value](Tag d, Vector dy, Vector v) HWY_ATTR {
        return hn::IfThenElse(hn::Gt(v, hn::Zero(d)), dy, hn::Mul(dy, hn::Set(d, value)));
      });
    case ElementOp::gelu_exact_grad:
      return x.map([](Tag d, Vector dy, Vector v)
                       HWY_ATTR { return hn::Mul(dy, gelu_exact(d, v).slope); });
    case ElementOp::gelu_tanh_grad:
      return x.map([](Tag d, Vector dy, Vector v)
                       HWY_ATTR { return hn::Mul(dy, gelu_tanh(d, v).slope); });
    case ElementOp::silu_grad:
      return x.map([](Tag d, Vector dy, Vector v) HWY_ATTR {
        return hn::Mul(dy, gated_slope(d, v, sigmoid(d, v), hn::Set(d, 1.0f)));
      });
    case ElementOp::sigmoid_grad:
      return x.map([](Tag d, Vector dy, Vector y)
                       HWY_ATTR { return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(d, 1.0f), y))); });
    default:  // tanh_grad
      return x.map([](Tag d, Vector dy, Vector y)
                       HWY_ATTR { return hn::Mul(dy, hn::NegMulAdd(y, y, hn::Set(d, 1.0f))); });
  }
}

void run_select(const Operands& x) {
  x.map([](Tag d, Vector a, Vector b, Vector c)
            HWY_ATTR { return hn::IfThenElse(hn::Eq(a, hn::Zero(d)), c, b); });
}

void run_block(const ElementInstruction* code, int count, int inputs, float* const* registers,
               int64_t elements) {
  const int64_t n = (elements + kElementPad - 1) / kElementPad * kElementPad;
  const auto at = [&](int index) { return index < 0 ? nullptr : registers[index]; };
  for (int i = 0; i < count; ++i) {
    const ElementInstruction& instruction = code[i];
    const Operands operands = {at(instruction.a), at(instruction.b), at(instruction.c),
                               registers[inputs + i], n};
    const ElementOp op = instruction.op;
    if (op <= ElementOp::equal) {
      run_binary(instruction, operands);
    } else if (op <= ElementOp::sign) {
      run_unary(instruction, operands);
    } else if (op <= ElementOp::clamp_max) {
      run_with_immediate(instruction, operands);
    } else if (op <= ElementOp::tanh_grad) {
      run_gradient(instruction, operands);
    } else if (op == ElementOp::select) {
      run_select(operands);
    } else {
      (*instruction.function)(operands.a, operands.b, operands.c, operands.out, elements);
    }
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(run_block);

int operand_count(const ElementInstruction& instruction) {
  const ElementOp op = instruction.op;
  if (op == ElementOp::select) return 3;
  if (op == ElementOp::custom)
    return (instruction.a >= 0) + (instruction.b >= 0) + (instruction.c >= 0);
  return op <= ElementOp::equal || op >= ElementOp::relu_grad ? 2 : 1;
}

void run_instructions(const ElementInstruction* code, int count, int inputs,
                      float* const* registers, int64_t n) {
  HWY_DYNAMIC_DISPATCH(run_block)(code, count, inputs, registers, n);
}

}  // namespace artel::kernels
#endif
