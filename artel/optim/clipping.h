// Clipping of gradients by their norm. (Clipping by value is part of each update rule.)
#pragma once

#include <span>

#include "artel/base/thread_pool.h"

namespace artel::optim {

// The sum of squares, added in fixed chunks whatever the number of threads. Sums over several
// tensors, added in a fixed order, give the norm of a whole gradient. Throws nothing; a NaN or an
// infinity in the values shows in the result.
double sum_of_squares(ThreadPool& pool, std::span<const float> values);

// What to multiply a gradient of this norm by so that it is at most `max_norm` long; 1 when it is
// short enough or `max_norm` is 0. Throws an Error of kind numeric if the norm is not finite.
float clip_scale(double norm, double max_norm);

}  // namespace artel::optim
