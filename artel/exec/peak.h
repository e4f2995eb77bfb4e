// What the processor could do at best, to judge kernels by.
#pragma once

namespace artel {

// Floating-point operations a second of one core in fused multiply-adds of the widest vectors that
// this processor has, measured for about 50 ms.
double measure_peak_flops();

}  // namespace artel
