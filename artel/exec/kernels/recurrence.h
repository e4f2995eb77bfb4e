// LSTM and GRU over whole sequences: for each position, the product of the states before with the
// weights, then the cell. Samples do not depend on each other, so each thread takes some of them
// through all positions and never waits for another; the weights are packed once and stay in its L2
// cache. The bits do not depend on how samples are grouped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "artel/base/thread_pool.h"
#include "artel/exec/kernels/gemm_panels.h"

namespace artel::kernels {

enum class Cell { lstm, gru };

struct RecurrenceShape {
  Cell cell;
  int64_t batch, positions, units;
  bool reverse = false;  // from the last position to the first

  int64_t gates() const { return (cell == Cell::lstm ? 4 : 3) * units; }
};

// Arrays are [batch, positions, units or gates()], `weight` is [gates(), units]. Where the mask
// [batch, positions] is 0, the state stays as it is.
struct RecurrenceForward {
  const float* projected;
  const float* weight;
  const float* bias;     // [gates()] or null
  const uint32_t* mask;  // or null
  float* y;
  float* gates;   // activated, for backward; may be `projected`
  float* memory;  // for backward: cells of an LSTM, the state's part of a GRU's candidate
};

struct RecurrenceBackward {
  const float* dy;
  const float* weight;
  const float* y;
  const float* gates;
  const float* memory;
  const uint32_t* mask;  // or null
  float* dprojected;     // may be `gates`
  float* dhidden;        // of a GRU only: gradient of what the states contribute to the gates
};

// Prepared once for a shape; immutable.
class Recurrence {
 public:
  Recurrence(const RecurrenceShape& shape, int threads);

  size_t forward_workspace_bytes() const;
  size_t backward_workspace_bytes() const;
  void forward(ThreadPool& pool, const RecurrenceForward& arguments, std::byte* workspace) const;
  void backward(ThreadPool& pool, const RecurrenceBackward& arguments, std::byte* workspace) const;

 private:
  void forward_samples(const RecurrenceForward& a, int64_t first, int64_t count,
                       const float* panels, float* scratch) const;
  void backward_samples(const RecurrenceBackward& a, int64_t first, int64_t count,
                        const float* panels, float* scratch) const;
  Ahead rows_at(const float* gates, int64_t first, int64_t count, int64_t at) const;
  int64_t scratch_floats() const;
  // The position that is computed as number `step`.
  int64_t position(int64_t step) const {
    return shape_.reverse ? shape_.positions - 1 - step : step;
  }

  RecurrenceShape shape_;
  int threads_;
  int64_t group_;  // samples that go through all positions together
};

}  // namespace artel::kernels
