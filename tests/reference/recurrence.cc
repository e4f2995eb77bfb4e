// LSTM and GRU, position by position, with PyTorch's equations.
#include <cmath>

#include "artel/graph/op.h"
#include "tests/reference/rules.h"

namespace artel::reference {
namespace {

struct Recurrence {
  bool is_lstm, reverse;
  int64_t batch, positions, units;
  const Array* mask = nullptr;

  int64_t gates() const { return (is_lstm ? 4 : 3) * units; }
  bool skips(int64_t sample, int64_t at) const {
    return mask && mask->data[static_cast<size_t>(sample * positions + at)] == 0;
  }
  // The places of element j of a state and of a gate.
  size_t state(int64_t sample, int64_t at, int64_t j) const {
    return static_cast<size_t>((sample * positions + at) * units + j);
  }
  size_t gate(int64_t sample, int64_t at, int64_t which, int64_t j) const {
    return static_cast<size_t>((sample * positions + at) * gates() + which * units + j);
  }
  // An element of the states before a position.
  double before(const Array& states, int64_t sample, int64_t at, int64_t j) const {
    const int64_t previous = reverse ? at + 1 : at - 1;
    return previous < 0 || previous >= positions ? 0 : states.data[state(sample, previous, j)];
  }

  // Calls body(sample, position) in the order of time, or backwards.
  template <typename Body>
  void for_each_position(bool backwards, const Body& body) const {
    for (int64_t sample = 0; sample < batch; ++sample)
      for (int64_t step = 0; step < positions; ++step)
        body(sample, reverse != backwards ? positions - 1 - step : step);
  }
};

// `gates`: the projected inputs, or the gates.
Recurrence recurrence_of(const Call& call, const Array& gates, int mask) {
  return {.is_lstm = call.node.op->name.starts_with("lstm"),
          .reverse = call.flag("reverse"),
          .batch = gates.shape[0],
          .positions = gates.shape[1],
          .units = call.in(1).shape[1],
          .mask = call.count() > mask ? &call.in(mask) : nullptr};
}

// The results of a forward op.
struct Trace {
  Array y, gates, memory;
};

Trace trace_of(const Call& call, const Recurrence& r) {
  const Array &projected = call.in(0), &weight = call.in(1);
  const Array* bias = call.flag("bias") ? &call.in(2) : nullptr;
  Trace t = {zeros({r.batch, r.positions, r.units}), zeros(projected.shape),
             zeros({r.batch, r.positions, r.units})};
  const auto apply = [&](double value) { return call.disturbance.apply(value); };
  r.for_each_position(false, [&](int64_t sample, int64_t at) {
    const auto hidden = [&](int64_t which, int64_t j) {
      const int64_t row = which * r.units + j;
      double sum = bias ? bias->data[static_cast<size_t>(row)] : 0;
      for (int64_t k = 0; k < r.units; ++k)
        sum += weight.data[static_cast<size_t>(row * r.units + k)] * r.before(t.y, sample, at, k);
      return apply(sum);
    };
    const auto input = [&](int64_t which, int64_t j) {
      return projected.data[r.gate(sample, at, which, j)];
    };
    for (int64_t j = 0; j < r.units; ++j) {
      const auto gate = [&](int64_t which) -> double& {
        return t.gates.data[r.gate(sample, at, which, j)];
      };
      double& y = t.y.data[r.state(sample, at, j)];
      double& memory = t.memory.data[r.state(sample, at, j)];
      if (r.skips(sample, at)) {
        y = r.before(t.y, sample, at, j);
        memory = r.before(t.memory, sample, at, j);
      } else if (r.is_lstm) {
        for (const int64_t which : {0, 1, 3})
          gate(which) = sigmoid(input(which, j) + hidden(which, j));
        gate(2) = std::tanh(input(2, j) + hidden(2, j));
        memory = apply(gate(1) * r.before(t.memory, sample, at, j) + gate(0) * gate(2));
        y = apply(gate(3) * std::tanh(memory));
      } else {
        for (const int64_t which : {0, 1})
          gate(which) = sigmoid(input(which, j) + hidden(which, j));
        memory = hidden(2, j);
        gate(2) = std::tanh(input(2, j) + gate(0) * memory);
        y = apply((1 - gate(1)) * gate(2) + gate(1) * r.before(t.y, sample, at, j));
      }
    }
  });
  return t;
}

// The gradients of what the inputs and of what the states contribute to the gates.
struct Gradients {
  Array projected, hidden;
};

Gradients gradients_of(const Call& call, const Recurrence& r, const Trace& t, const Array& dy) {
  const Array& weight = call.in(1);
  Gradients g = {zeros(t.gates.shape), zeros(t.gates.shape)};
  const auto units = static_cast<size_t>(r.units);
  std::vector<double> dstate, dcells;
  const int64_t last = r.reverse ? 0 : r.positions - 1;
  r.for_each_position(true, [&](int64_t sample, int64_t at) {
    if (at == last) {
      dstate.assign(units, 0);
      dcells.assign(units, 0);
    }
    std::vector<double> next(units, 0);  // of the state before
    for (int64_t j = 0; j < r.units; ++j) {
      const double d = call.disturbance.apply(dstate[j] + dy.data[r.state(sample, at, j)]);
      if (r.skips(sample, at)) {
        next[j] += d;
        continue;
      }
      const auto gate = [&](int64_t which) { return t.gates.data[r.gate(sample, at, which, j)]; };
      const auto set = [&](int64_t which, double projected, double hidden) {
        g.projected.data[r.gate(sample, at, which, j)] = projected;
        g.hidden.data[r.gate(sample, at, which, j)] = hidden;
      };
      const auto set_both = [&](int64_t which, double value) { set(which, value, value); };
      const double memory = t.memory.data[r.state(sample, at, j)];
      if (r.is_lstm) {
        const double i = gate(0), f = gate(1), c = gate(2), o = gate(3);
        const double squashed = std::tanh(memory);
        const double dc = call.disturbance.apply(dcells[j] + d * o * (1 - squashed * squashed));
        set_both(0, dc * c * i * (1 - i));
        set_both(1, dc * r.before(t.memory, sample, at, j) * f * (1 - f));
        set_both(2, dc * i * (1 - c * c));
        set_both(3, d * squashed * o * (1 - o));
        dcells[j] = dc * f;
      } else {
        const double reset = gate(0), update = gate(1), n = gate(2);
        const double dn = d * (1 - update) * (1 - n * n);
        set_both(0, dn * memory * reset * (1 - reset));
        set_both(1, d * (r.before(t.y, sample, at, j) - n) * update * (1 - update));
        set(2, dn, dn * reset);
        next[j] += d * update;
      }
    }
    for (int64_t row = 0; row < r.gates(); ++row)
      for (int64_t k = 0; k < r.units; ++k)
        next[k] += weight.data[static_cast<size_t>(row * r.units + k)] *
                   g.hidden.data[r.gate(sample, at, 0, row)];
    dstate = next;
  });
  return g;
}

Arrays recurrence(const Call& call) {
  const Trace t = trace_of(call, recurrence_of(call, call.in(0), call.flag("bias") ? 3 : 2));
  return {t.y, t.gates, t.memory};
}

Arrays recurrence_gradient(const Call& call) {
  const bool has_bias = call.flag("bias");
  const Recurrence r = recurrence_of(call, call.in(0), has_bias ? 3 : 2);
  const Trace t = trace_of(call, r);
  const Gradients g = gradients_of(call, r, t, call.dy());
  Array weight = zeros(call.in(1).shape), bias = zeros({r.gates()});
  r.for_each_position(false, [&](int64_t sample, int64_t at) {
    for (int64_t row = 0; row < r.gates(); ++row) {
      const double d = g.hidden.data[r.gate(sample, at, 0, row)];
      bias.data[static_cast<size_t>(row)] += d;
      for (int64_t k = 0; k < r.units; ++k)
        weight.data[static_cast<size_t>(row * r.units + k)] += d * r.before(t.y, sample, at, k);
    }
  });
  Arrays results = {g.projected, weight};
  if (has_bias) results.push_back(bias);
  results.resize(call.inputs.size());  // none for the mask
  return results;
}

// Inputs: dy, the weights, the results of the forward op, perhaps a mask.
Arrays recurrence_backward(const Call& call) {
  const Trace t = {call.in(2), call.in(3), call.in(4)};
  const Gradients g = gradients_of(call, recurrence_of(call, call.in(3), 5), t, call.in(0));
  Arrays results = {g.projected};
  if (call.node.outputs.size() > 1) results.push_back(g.hidden);
  return results;
}

}  // namespace

std::vector<Rule> recurrence_rules() {
  return {{"lstm", recurrence, recurrence_gradient},
          {"lstm_backward", recurrence_backward},
          {"gru", recurrence, recurrence_gradient},
          {"gru_backward", recurrence_backward}};
}

}  // namespace artel::reference
