// Small pieces that several kernel files use.
#pragma once

#include <memory>

#include "artel/exec/kernel.h"

namespace artel {

// Layout rule of image kernels: rank-4 f32 operands channels-last, all others row-major.
LayoutChoice images_channels_last(const Graph& graph, const Node& node,
                                  const std::vector<Layout>& offered);

// A value seen as a matrix whose columns are the last axis in memory.
struct Rows {
  int64_t rows, columns;
};
Rows rows_of(const Shape& shape);
// The same with channels (axis 1) as columns, as images lie in channels-last memory.
Rows channel_rows(const Shape& shape);

// The key of the random numbers that a node of this stream draws in a run.
uint64_t random_key(const StepContext& context, uint64_t stream);

// True if the inputs from `first` to `last`, usually weights, have the same values for all of
// several lanes of a batch.
bool share_inputs(const KernelRequest& request, int first, int last);

// Lets `kernel` run several lanes at once by `run_lanes`, if they share all inputs but the first.
void join_lanes(const KernelRequest& request, Kernel& kernel,
                std::function<void(std::span<const KernelRun>)> run_lanes);

// Seconds of one call of `kernel` (the least of a few) on memory of the node's sizes.
double measure(const KernelRequest& request, const Kernel& kernel);

}  // namespace artel
