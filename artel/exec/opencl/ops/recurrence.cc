#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/products.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// Computes one position of all samples, one work item per unit of a sample. `hidden` is the
// contribution of the previous states to the gates. At the first position (`before` < 0), previous
// states and cells are zero. See exec/cpu/sequence/recurrence.cc.
constexpr std::string_view kRecurrenceSource = R"(
float tanh_slope(float value) { return 1.0f - value * value; }
float sigmoid_slope(float value) { return value - value * value; }

__kernel void cell_forward(int lstm, int batch, int positions, int units, int at, int before,
                           IN(float, projected), IN(float, hidden), IN(uint, mask), OUT(float, y),
                           OUT(float, gates), OUT(float, memory)) {
  USE_IN(float, projected);
  USE_IN(float, hidden);
  USE_IN(uint, mask);
  USE_OUT(float, y);
  USE_OUT(float, gates);
  USE_OUT(float, memory);
  const int i = get_global_id(0);
  if (i >= batch * units) return;
  const int sample = i / units, unit = i % units, count = lstm ? 4 : 3;
  const long here = (long)sample * positions + at;
  const long earlier = ((long)sample * positions + before) * units + unit;
  projected += here * count * units + unit;
  gates += here * count * units + unit;
  hidden += (long)sample * count * units + unit;
  const long place = here * units + unit;
  const float state = before < 0 ? 0.0f : y[earlier];
  const float cell = before < 0 ? 0.0f : memory[earlier];
  if (mask && mask[here] == 0) {
    for (int gate = 0; gate < count; ++gate) gates[gate * units] = 0;
    memory[place] = cell;
    y[place] = state;
    return;
  }
  if (lstm) {
    const float input = sigmoid_of(projected[0] + hidden[0]);
    const float forget = sigmoid_of(projected[units] + hidden[units]);
    const float candidate = tanh(projected[2 * units] + hidden[2 * units]);
    const float output = sigmoid_of(projected[3 * units] + hidden[3 * units]);
    const float cells = forget * cell + input * candidate;
    gates[0] = input;
    gates[units] = forget;
    gates[2 * units] = candidate;
    gates[3 * units] = output;
    memory[place] = cells;
    y[place] = output * tanh(cells);
  } else {
    const float reset = sigmoid_of(projected[0] + hidden[0]);
    const float update = sigmoid_of(projected[units] + hidden[units]);
    const float remembered = hidden[2 * units];
    const float candidate = tanh(projected[2 * units] + reset * remembered);
    gates[0] = reset;
    gates[units] = update;
    gates[2 * units] = candidate;
    memory[place] = remembered;
    y[place] = update * (state - candidate) + candidate;
  }
}

/* `dhidden` is null for an LSTM, where it equals dprojected. */
__kernel void cell_backward(int lstm, int batch, int positions, int units, int at, int before,
                            IN(float, dy), IN(float, y), IN(float, gates), IN(float, memory),
                            IN(uint, mask), OUT(float, dprojected), OUT(float, dhidden),
                            OUT(float, dstates), OUT(float, dcells)) {
  USE_IN(float, dy);
  USE_IN(float, y);
  USE_IN(float, gates);
  USE_IN(float, memory);
  USE_IN(uint, mask);
  USE_OUT(float, dprojected);
  USE_OUT(float, dhidden);
  USE_OUT(float, dstates);
  USE_OUT(float, dcells);
  const int i = get_global_id(0);
  if (i >= batch * units) return;
  const int sample = i / units, unit = i % units, count = lstm ? 4 : 3;
  const long here = (long)sample * positions + at, place = here * units + unit;
  const long earlier = ((long)sample * positions + before) * units + unit;
  gates += here * count * units + unit;
  dprojected += here * count * units + unit;
  if (dhidden) dhidden += here * count * units + unit;
  const float dstate = dy[place] + dstates[i];
  if (mask && mask[here] == 0) {
    for (int gate = 0; gate < count; ++gate) {
      dprojected[gate * units] = 0;
      if (dhidden) dhidden[gate * units] = 0;
    }
    dstates[i] = dstate;
    return;
  }
  if (lstm) {
    const float input = gates[0], forget = gates[units], candidate = gates[2 * units];
    const float output = gates[3 * units], squashed = tanh(memory[place]);
    const float cell = before < 0 ? 0.0f : memory[earlier];
    const float dcell = dcells[i] + dstate * output * tanh_slope(squashed);
    dprojected[0] = dcell * candidate * sigmoid_slope(input);
    dprojected[units] = dcell * cell * sigmoid_slope(forget);
    dprojected[2 * units] = dcell * input * tanh_slope(candidate);
    dprojected[3 * units] = dstate * squashed * sigmoid_slope(output);
    dcells[i] = dcell * forget;
    dstates[i] = 0;
  } else {
    const float reset = gates[0], update = gates[units], candidate = gates[2 * units];
    const float kept = (before < 0 ? 0.0f : y[earlier]) - candidate;
    const float dcandidate = (dstate - dstate * update) * tanh_slope(candidate);
    const float dupdate = dstate * kept * sigmoid_slope(update);
    const float dreset = dcandidate * memory[place] * sigmoid_slope(reset);
    dprojected[0] = dreset;
    dprojected[units] = dupdate;
    dprojected[2 * units] = dcandidate;
    dhidden[0] = dreset;
    dhidden[units] = dupdate;
    dhidden[2 * units] = dcandidate * reset;
    dstates[i] = dstate * update;
  }
}
)";

struct Sequence {
  bool lstm, reverse;
  int64_t batch, positions, units;

  Sequence(const KernelRequest& request, bool lstm, const Shape& gates)
      : lstm(lstm),
        reverse(request.attributes().flag("reverse")),
        batch(gates[0]),
        positions(gates[1]),
        units(request.in(1)[1]) {}

  int64_t gates() const { return (lstm ? 4 : 3) * units; }
  // The position computed in step `step`; -1 before the first.
  int64_t position(int64_t step) const {
    return step >= 0 && reverse ? positions - 1 - step : step;
  }
};

const void* mask_in(const KernelRun& run, int mask) {
  return mask >= 0 ? run.inputs[static_cast<size_t>(mask)] : nullptr;
}

std::function<Kernel(const KernelRequest&)> cells_forward(bool lstm) {
  return [lstm](const KernelRequest& request) -> Kernel {
    OpenClDevice& device = device_of(request);
    const Products products(device);
    const BuiltKernel cell = device.kernel(kRecurrenceSource, "cell_forward");
    const Sequence s(request, lstm, request.in(0));
    const bool bias = request.attributes().flag("bias");
    const int after = bias ? 3 : 2, mask = request.inputs() > after ? after : -1;
    return {{},
            static_cast<size_t>(s.batch * s.gates()) * sizeof(float),
            [=, &device](const KernelRun& run) {
              auto* const hidden = reinterpret_cast<float*>(run.workspace);
              for (int64_t step = 0; step < s.positions; ++step) {
                const int64_t at = s.position(step), before = s.position(step - 1);
                products.run({.m = s.batch,
                              .n = s.gates(),
                              .k = step > 0 ? s.units : 0,
                              .a = run.out(0) + std::max<int64_t>(before, 0) * s.units,
                              .lda = s.positions * s.units,
                              .b = run.in(1),
                              .ldb = s.units,
                              .transpose_b = true,
                              .c = hidden,
                              .ldc = s.gates(),
                              .bias = bias ? run.in(2) : nullptr});
                device.run(cell, items(s.batch * s.units),
                           {s.lstm, s.batch, s.positions, s.units, at, before, run.in(0), hidden,
                            mask_in(run, mask), run.out(0), run.out(1), run.out(2)});
              }
            },
            {{1, 0}}};
  };
}

std::function<Kernel(const KernelRequest&)> cells_backward(bool lstm) {
  return [lstm](const KernelRequest& request) -> Kernel {
    OpenClDevice& device = device_of(request);
    const Products products(device);
    const Fill fill(device);
    const BuiltKernel cell = device.kernel(kRecurrenceSource, "cell_backward");
    const Sequence s(request, lstm, request.in(3));
    const int mask = request.inputs() > 5 ? 5 : -1;
    const int64_t states = s.batch * s.units;
    return {{},
            static_cast<size_t>(2 * states) * sizeof(float),
            [=, &device](const KernelRun& run) {
              auto* const dstates = reinterpret_cast<float*>(run.workspace);
              float* const dcells = dstates + states;
              float* const dhidden = run.out(s.lstm ? 0 : 1);
              fill.run(dstates, 2 * states);
              for (int64_t step = s.positions - 1; step >= 0; --step) {
                const int64_t at = s.position(step), before = s.position(step - 1);
                device.run(cell, items(states),
                           {s.lstm, s.batch, s.positions, s.units, at, before, run.in(0), run.in(2),
                            run.in(3), run.in(4), mask_in(run, mask), run.out(0),
                            s.lstm ? nullptr : dhidden, dstates, dcells});
                if (step == 0) continue;
                products.run({.m = s.batch,
                              .n = s.units,
                              .k = s.gates(),
                              .a = dhidden + at * s.gates(),
                              .lda = s.positions * s.gates(),
                              .b = run.in(1),
                              .ldb = s.units,
                              .c = dstates,
                              .ldc = s.units,
                              .accumulate = true});
              }
            },
            {{0, 3}}};
  };
}

}  // namespace

std::vector<KernelDefinition> recurrence_kernels() {
  return {{"lstm", cells_forward(true)},
          {"lstm_backward", cells_backward(true)},
          {"gru", cells_forward(false)},
          {"gru_backward", cells_backward(false)}};
}

}  // namespace artel::opencl
