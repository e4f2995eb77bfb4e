// Clipping of gradients by their norm. (Clipping by value is part of each update rule.)
#pragma once

#include <span>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::optim {

// The sum of squares, added in fixed chunks whatever the number of threads. Such sums over several
// tensors, added in a fixed order, give the norm of a whole gradient. Does not throw; NaN or
// infinity in the values carries over to the result.
double sum_of_squares(ThreadPool& pool, std::span<const float> values);

// The terms of that sum, one for each chunk (kNormChunk) in order: a tensor that lies in parts, cut
// between chunks, has the terms of its parts.
std::vector<double> squares_of_chunks(ThreadPool& pool, std::span<const float> values);

// The factor that scales a gradient of this norm down to at most `max_norm`; 1 if the norm is small
// enough or `max_norm` is 0. Throws an Error of kind numeric if the norm is not finite.
float clip_scale(double norm, double max_norm);

}  // namespace artel::optim
