// The capabilities of the processor: its peak speed, for judging kernels, and its number formats.
#pragma once

#include "artel/base/thread_pool.h"

namespace artel {

// Floating-point operations a second of one core in fused multiply-adds of the widest vectors that
// this processor has, measured for about 50 ms.
double measure_peak_flops();

// Floating-point operations per second of all threads of a pool together, measured for `seconds`.
// Other programs and quotas count: a quota's period is 0.1 s, so measure for several of them.
double measure_sustained_flops(ThreadPool& pool, double seconds);

// True if the processor can multiply bf16 numbers.
bool has_bf16();

}  // namespace artel
