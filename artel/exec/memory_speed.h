// Measures the memory bandwidth, the limit of memory-bound work.
#pragma once

#include "artel/base/thread_pool.h"

namespace artel {

// Bytes per second that the threads of a pool read together from uncached memory. The best of
// several passes over 512 MiB, which takes about 0.25 s.
double measure_memory_speed(ThreadPool& pool, int threads);

}  // namespace artel
