// How fast memory can be read: the limit for work that does little with much data.
#pragma once

#include "artel/base/thread_pool.h"

namespace artel {

// Bytes a second that the threads of a pool read together, one after another from memory that no
// cache holds: the best of several passes over 512 MiB, which takes about a quarter of a second.
double measure_memory_speed(ThreadPool& pool, int threads);

}  // namespace artel
