// LSTM and GRU over whole sequences: for each position, the product of the states before with the
// weights, then the cell. Samples do not depend on each other, so each thread takes some of them
// through all positions and never waits for another; the weights are packed once and stay in its L2
// cache. The bits do not depend on how samples are grouped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "artel/base/thread_pool.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"

namespace artel::kernels {

enum class Cell { lstm, gru };

struct RecurrenceShape {
  Cell cell;
  int64_t batch, positions, units;
  bool reverse = false;  // from the last position to the first

  int64_t gates() const { return (cell == Cell::lstm ? 4 : 3) * units; }
};

// The arguments of one lane. Arrays are [batch, positions, units or gates()]. `weight` is
// [gates(), units], shared by all lanes. The state does not change where the mask [batch,
// positions] is 0.
struct RecurrenceForward {
  int64_t batch;
  const float* projected;
  const float* weight;
  const float* bias;     // [gates()] or null
  const uint32_t* mask;  // or null
  float* y;
  float* gates;   // activated, for backward; may be `projected`
  float* memory;  // for backward: cells of an LSTM, the state's part of a GRU's candidate
};

struct RecurrenceBackward {
  int64_t batch;
  const float* dy;
  const float* weight;
  const float* y;
  const float* gates;
  const float* memory;
  const uint32_t* mask;  // or null
  float* dprojected;     // may be `gates`
  float* dhidden;        // of a GRU only: gradient of what the states contribute to the gates
};

// Prepared once for a shape, of which up to `lanes` run at once; immutable.
class Recurrence {
 public:
  Recurrence(const RecurrenceShape& shape, int threads, int lanes = 1);

  size_t forward_workspace_bytes() const;
  size_t backward_workspace_bytes() const;
  void forward(ThreadPool& pool, std::span<const RecurrenceForward> lanes,
               std::byte* workspace) const;
  void backward(ThreadPool& pool, std::span<const RecurrenceBackward> lanes,
                std::byte* workspace) const;

 private:
  // Samples that go through all positions together.
  static constexpr int64_t kMostGroup = 48;
  template <typename Arguments>
  struct Samples;
  int64_t group_size(int64_t batch) const;
  int64_t scratch_floats(int64_t group) const;
  int64_t most_group() const;
  template <typename Arguments, typename Run>
  void for_each_group(ThreadPool& pool, std::span<const Arguments> lanes, float* scratch,
                      const Run& run) const;
  void forward_samples(const Samples<RecurrenceForward>& samples, const float* panels,
                       float* scratch) const;
  void backward_samples(const Samples<RecurrenceBackward>& samples, const float* panels,
                        float* scratch) const;
  // The position that is computed as number `step`.
  int64_t position(int64_t step) const {
    return shape_.reverse ? shape_.positions - 1 - step : step;
  }

  RecurrenceShape shape_;
  int threads_, lanes_;
};

}  // namespace artel::kernels
