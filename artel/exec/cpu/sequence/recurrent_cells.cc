#include "artel/exec/cpu/sequence/recurrent_cells.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/sequence/recurrent_cells.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/element_math-inl.h"
#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// x (1 - x): the slope of a sigmoid whose value is x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_slope(D, V x) {
  return hn::NegMulAdd(x, x, x);
}

// 1 - x^2: the slope of a tanh whose value is x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_slope(D d, V x) {
  return hn::NegMulAdd(x, x, hn::Set(d, 1.0f));
}

void LstmForward(const CellForward& a) {
  const int64_t n = a.units;
  for_each_vector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto sum = [&](int64_t gate) HWY_ATTR {
      return hn::Add(hn::LoadU(d, a.projected + gate * n + i),
                     hn::LoadU(d, a.hidden + gate * n + i));
    };
    const auto input = sigmoid(d, sum(0)), forget = sigmoid(d, sum(1));
    const auto candidate = tanh(d, sum(2)), output = sigmoid(d, sum(3));
    const auto cells = hn::MulAdd(forget, hn::LoadU(d, a.before + i), hn::Mul(input, candidate));
    hn::StoreU(input, d, a.gates + i);
    hn::StoreU(forget, d, a.gates + n + i);
    hn::StoreU(candidate, d, a.gates + 2 * n + i);
    hn::StoreU(output, d, a.gates + 3 * n + i);
    hn::StoreU(cells, d, a.memory + i);
    hn::StoreU(hn::Mul(output, tanh(d, cells)), d, a.state + i);
  });
}

void GruForward(const CellForward& a) {
  const int64_t n = a.units;
  for_each_vector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto projected = [&](int64_t gate)
                               HWY_ATTR { return hn::LoadU(d, a.projected + gate * n + i); };
    const auto hidden = [&](int64_t gate)
                            HWY_ATTR { return hn::LoadU(d, a.hidden + gate * n + i); };
    const auto reset = sigmoid(d, hn::Add(projected(0), hidden(0)));
    const auto update = sigmoid(d, hn::Add(projected(1), hidden(1)));
    const auto remembered = hidden(2);
    const auto candidate = tanh(d, hn::MulAdd(reset, remembered, projected(2)));
    const auto before = hn::LoadU(d, a.before + i);
    hn::StoreU(reset, d, a.gates + i);
    hn::StoreU(update, d, a.gates + n + i);
    hn::StoreU(candidate, d, a.gates + 2 * n + i);
    hn::StoreU(remembered, d, a.memory + i);
    hn::StoreU(hn::MulAdd(update, hn::Sub(before, candidate), candidate), d, a.state + i);
  });
}

void LstmBackward(const CellBackward& a) {
  const int64_t n = a.units;
  for_each_vector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto gate = [&](int64_t which) HWY_ATTR { return hn::LoadU(d, a.gates + which * n + i); };
    const auto input = gate(0), forget = gate(1), candidate = gate(2), output = gate(3);
    const auto squashed = tanh(d, hn::LoadU(d, a.memory + i));
    const auto dstate = hn::Add(hn::LoadU(d, a.dy + i), hn::LoadU(d, a.dstate + i));
    const auto dcells =
        hn::MulAdd(hn::Mul(dstate, output), tanh_slope(d, squashed), hn::LoadU(d, a.dcells + i));
    const auto store = [&](int64_t which, auto value)
                           HWY_ATTR { hn::StoreU(value, d, a.dprojected + which * n + i); };
    store(0, hn::Mul(hn::Mul(dcells, candidate), sigmoid_slope(d, input)));
    store(1, hn::Mul(hn::Mul(dcells, hn::LoadU(d, a.before + i)), sigmoid_slope(d, forget)));
    store(2, hn::Mul(hn::Mul(dcells, input), tanh_slope(d, candidate)));
    store(3, hn::Mul(hn::Mul(dstate, squashed), sigmoid_slope(d, output)));
    hn::StoreU(hn::Mul(dcells, forget), d, a.dcells + i);
    hn::StoreU(hn::Zero(d), d, a.dstate + i);
  });
}

void GruBackward(const CellBackward& a) {
  const int64_t n = a.units;
  for_each_vector(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto gate = [&](int64_t which) HWY_ATTR { return hn::LoadU(d, a.gates + which * n + i); };
    const auto reset = gate(0), update = gate(1), candidate = gate(2);
    const auto dstate = hn::Add(hn::LoadU(d, a.dy + i), hn::LoadU(d, a.dstate + i));
    const auto kept = hn::Sub(hn::LoadU(d, a.before + i), candidate);
    const auto dcandidate =
        hn::Mul(hn::NegMulAdd(dstate, update, dstate), tanh_slope(d, candidate));
    const auto dupdate = hn::Mul(hn::Mul(dstate, kept), sigmoid_slope(d, update));
    const auto dreset =
        hn::Mul(hn::Mul(dcandidate, hn::LoadU(d, a.memory + i)), sigmoid_slope(d, reset));
    hn::StoreU(dreset, d, a.dprojected + i);
    hn::StoreU(dupdate, d, a.dprojected + n + i);
    hn::StoreU(dcandidate, d, a.dprojected + 2 * n + i);
    hn::StoreU(dreset, d, a.dhidden + i);
    hn::StoreU(dupdate, d, a.dhidden + n + i);
    hn::StoreU(hn::Mul(dcandidate, reset), d, a.dhidden + 2 * n + i);
    hn::StoreU(hn::Mul(dstate, update), d, a.dstate + i);
  });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(LstmForward);
HWY_EXPORT(GruForward);
HWY_EXPORT(LstmBackward);
HWY_EXPORT(GruBackward);

void lstm_forward(const CellForward& cell) { HWY_DYNAMIC_DISPATCH(LstmForward)(cell); }
void gru_forward(const CellForward& cell) { HWY_DYNAMIC_DISPATCH(GruForward)(cell); }
void lstm_backward(const CellBackward& cell) { HWY_DYNAMIC_DISPATCH(LstmBackward)(cell); }
void gru_backward(const CellBackward& cell) { HWY_DYNAMIC_DISPATCH(GruBackward)(cell); }

}  // namespace artel::kernels
#endif
