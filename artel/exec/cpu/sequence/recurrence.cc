#include "artel/exec/cpu/sequence/recurrence.h"

#include <algorithm>
#include <array>
#include <span>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/sequence/recurrent_cells.h"

namespace artel::kernels {
namespace {

constexpr int64_t kSamplesTogether = 48;

// The weights as the right factor of a product with a row for each sample.
struct PackedWeights {
  int64_t depth, columns;

  int64_t stride() const { return odd_lines(depth * panel_width()); }
  int64_t floats() const { return panel_count(columns) * stride(); }

  void pack(ThreadPool& pool, const float* weight, int64_t units, bool transposed,
            float* panels) const {
    const int64_t width = 4 * panel_width();
    pool.run(divide_up(columns, width), [&](int64_t part) {
      const int64_t column = part * width;
      pack_panels(weight + (transposed ? column * units : column), units, transposed, depth,
                  std::min(width, columns - column), panels + part * 4 * stride(), stride());
    });
  }

  // out = in times the weights, plus the previous `out`, or plus the bias.
  void multiply(const float* panels, int64_t rows, const float* in, float* out, bool accumulate,
                const float* bias, const Ahead& ahead) const {
    std::array<const float*, kSamplesTogether> a;
    std::array<float*, kSamplesTogether> c;
    for (int64_t i = 0; i < rows; ++i) {
      a[i] = in + i * odd_lines(depth);
      c[i] = out + i * odd_lines(columns);
    }
    const Segment segment{0, 0, depth};
    multiply_panels({.a = {a.data(), static_cast<size_t>(rows)},
                     .c = {c.data(), static_cast<size_t>(rows)},
                     .columns = columns,
                     .segments = {&segment, 1},
                     .panels = panels,
                     .panel_stride = stride(),
                     .accumulate = accumulate,
                     .bias = bias,
                     .ahead = ahead});
  }
};

PackedWeights forward_weights(const RecurrenceShape& shape) { return {shape.units, shape.gates()}; }
PackedWeights backward_weights(const RecurrenceShape& shape) {
  return {shape.gates(), shape.units};
}

}  // namespace

// Samples of one lane or of several, with the arguments of their lanes.
template <typename Arguments>
struct Recurrence::Samples {
  struct Sample {
    const Arguments* lane;
    int64_t index;  // in the lane
  };

  Samples(std::span<const Arguments> lanes, int64_t first, int64_t count_in) : count(count_in) {
    int64_t begin = 0, at = 0;
    for (const Arguments& lane : lanes) {
      for (; at < count && first + at < begin + lane.batch; ++at)
        all[at] = {&lane, first + at - begin};
      begin += lane.batch;
    }
  }

  // The gates of one lane's samples at one position. Gates after a product are prefetched during
  // it.
  Ahead rows_at(const float* Arguments::*gates, const RecurrenceShape& shape, int64_t at) const {
    const int64_t row = shape.gates(), sample = shape.positions * row;
    const auto [lane, index] = all[0];
    return {.first = lane->*gates + index * sample + at * row,
            .rows = std::min(count, lane->batch - index),
            .stride = sample,
            .bytes = row * static_cast<int64_t>(sizeof(float))};
  }

  int64_t count;
  std::array<Sample, kMostGroup> all;
};

Recurrence::Recurrence(const RecurrenceShape& shape, int threads, int lanes)
    : shape_(shape), threads_(threads), lanes_(lanes) {
  static_assert(kMostGroup == kSamplesTogether);
}

int64_t Recurrence::group_size(int64_t batch) const {
  const int64_t rounds = std::max<int64_t>(1, divide_up(batch, threads_ * kMostGroup));
  return std::max<int64_t>(1, divide_up(batch, threads_ * rounds));
}

int64_t Recurrence::most_group() const {
  return lanes_ == 1 ? group_size(shape_.batch)
                     : std::clamp<int64_t>(shape_.batch * lanes_, 1, kMostGroup);
}

// For each sample its state, or the gradients of its state and cells, and its gates; then zeros.
int64_t Recurrence::scratch_floats(int64_t group) const {
  return group * (2 * odd_lines(shape_.units) + odd_lines(shape_.gates())) +
         aligned_floats(shape_.units);
}

size_t Recurrence::forward_workspace_bytes() const {
  return sizeof(float) *
         (forward_weights(shape_).floats() + threads_ * scratch_floats(most_group()));
}

size_t Recurrence::backward_workspace_bytes() const {
  return sizeof(float) *
         (backward_weights(shape_).floats() + threads_ * scratch_floats(most_group()));
}

template <typename Arguments, typename Run>
void Recurrence::for_each_group(ThreadPool& pool, std::span<const Arguments> lanes, float* scratch,
                                const Run& run) const {
  int64_t batch = 0;
  for (const Arguments& lane : lanes) batch += lane.batch;
  const int64_t group = group_size(batch);
  for_each_with_slot(pool, threads_, divide_up(batch, group), [&](int64_t slot, int64_t i) {
    run(Samples<Arguments>(lanes, i * group, std::min(group, batch - i * group)),
        scratch + slot * scratch_floats(group));
  });
}

void Recurrence::forward(ThreadPool& pool, std::span<const RecurrenceForward> lanes,
                         std::byte* workspace) const {
  const PackedWeights weights = forward_weights(shape_);
  auto* panels = reinterpret_cast<float*>(workspace);
  weights.pack(pool, lanes[0].weight, shape_.units, true, panels);
  for_each_group(pool, lanes, panels + weights.floats(),
                 [&](const Samples<RecurrenceForward>& samples, float* scratch) {
                   forward_samples(samples, panels, scratch);
                 });
}

void Recurrence::forward_samples(const Samples<RecurrenceForward>& samples, const float* panels,
                                 float* scratch) const {
  const int64_t units = shape_.units, gates = shape_.gates(), row = odd_lines(units);
  const int64_t count = samples.count;
  float* states = scratch;  // the previous states, then its own
  float* hidden = states + count * row;
  float* zeros = hidden + count * odd_lines(gates);
  std::fill_n(states, count * row, 0.0f);
  std::fill_n(zeros, units, 0.0f);
  const auto run_cell = shape_.cell == Cell::lstm ? lstm_forward : gru_forward;
  for (int64_t step = 0; step < shape_.positions; ++step) {
    const int64_t at = position(step);
    forward_weights(shape_).multiply(panels, count, states, hidden, false,
                                     samples.all[0].lane->bias,
                                     samples.rows_at(&RecurrenceForward::projected, shape_, at));
    for (int64_t i = 0; i < count; ++i) {
      const RecurrenceForward& a = *samples.all[i].lane;
      const int64_t sample = samples.all[i].index * shape_.positions, here = sample + at;
      float *state = states + i * row, *memory = a.memory + here * units;
      const float* cells = zeros;
      if (step > 0) cells = a.memory + (sample + position(step - 1)) * units;
      if (a.mask && a.mask[here] == 0) {
        // Gates are not read again; they must be numbers all the same.
        std::fill_n(a.gates + here * gates, gates, 0.0f);
        std::copy_n(cells, units, memory);
      } else {
        run_cell({.units = units,
                  .projected = a.projected + here * gates,
                  .hidden = hidden + i * odd_lines(gates),
                  .before = shape_.cell == Cell::lstm ? cells : state,
                  .gates = a.gates + here * gates,
                  .memory = memory,
                  .state = state});
      }
      std::copy_n(state, units, a.y + here * units);
    }
  }
}

void Recurrence::backward(ThreadPool& pool, std::span<const RecurrenceBackward> lanes,
                          std::byte* workspace) const {
  const PackedWeights weights = backward_weights(shape_);
  auto* panels = reinterpret_cast<float*>(workspace);
  weights.pack(pool, lanes[0].weight, shape_.units, false, panels);
  for_each_group(pool, lanes, panels + weights.floats(),
                 [&](const Samples<RecurrenceBackward>& samples, float* scratch) {
                   backward_samples(samples, panels, scratch);
                 });
}

void Recurrence::backward_samples(const Samples<RecurrenceBackward>& samples, const float* panels,
                                  float* scratch) const {
  const int64_t units = shape_.units, gates = shape_.gates(), row = odd_lines(units);
  const int64_t count = samples.count;
  const bool is_lstm = shape_.cell == Cell::lstm;
  float* dstates = scratch;
  float* dhidden = dstates + count * row;
  float* dcells = dhidden + count * odd_lines(gates);
  float* zeros = dcells + count * row;
  std::fill_n(dstates, count * row, 0.0f);
  std::fill_n(dcells, count * row, 0.0f);
  std::fill_n(zeros, units, 0.0f);
  const auto run_cell = is_lstm ? lstm_backward : gru_backward;
  for (int64_t step = shape_.positions - 1; step >= 0; --step) {
    for (int64_t i = 0; i < count; ++i) {
      const RecurrenceBackward& a = *samples.all[i].lane;
      const float* states = is_lstm ? a.memory : a.y;
      const int64_t sample = samples.all[i].index * shape_.positions,
                    here = sample + position(step);
      float *dprojected = a.dprojected + here * gates, *own = dhidden + i * odd_lines(gates);
      float* dstate = dstates + i * row;
      if (a.mask && a.mask[here] == 0) {
        for (int64_t j = 0; j < units; ++j) dstate[j] += a.dy[here * units + j];
        std::fill_n(dprojected, gates, 0.0f);
        std::fill_n(own, gates, 0.0f);
      } else {
        run_cell({.units = units,
                  .gates = a.gates + here * gates,
                  .memory = a.memory + here * units,
                  .before = step > 0 ? states + (sample + position(step - 1)) * units : zeros,
                  .dy = a.dy + here * units,
                  .dstate = dstate,
                  .dcells = dcells + i * row,
                  .dprojected = dprojected,
                  .dhidden = own});
        if (is_lstm) std::copy_n(dprojected, gates, own);
      }
      if (!is_lstm) std::copy_n(own, gates, a.dhidden + here * gates);
    }
    if (step > 0)
      backward_weights(shape_).multiply(
          panels, count, dhidden, dstates, true, nullptr,
          samples.rows_at(&RecurrenceBackward::gates, shape_, position(step - 1)));
  }
}

}  // namespace artel::kernels
