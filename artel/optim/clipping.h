// Gradient clipping by norm. (Clipping by value is part of each update rule.)
#pragma once

#include <span>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::optim {

// The sum of squares, added in fixed chunks, independently of the number of threads. The norm of a
// whole gradient is the root of these sums, added over tensors in a fixed order. Does not throw;
// NaN and infinity propagate to the result.
double sum_of_squares(ThreadPool& pool, std::span<const float> values);

// The terms of that sum, one per chunk (kNormChunk), in order. The terms of a tensor cut between
// chunks are those of its parts.
std::vector<double> squares_of_chunks(ThreadPool& pool, std::span<const float> values);

// The factor that scales a gradient of this norm down to `max_norm`. 1 if the norm is smaller or
// `max_norm` is 0. Throws an Error of kind numeric if the norm is not finite.
float clip_scale(double norm, double max_norm);

}  // namespace artel::optim
