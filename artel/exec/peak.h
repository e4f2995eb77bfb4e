// What the processor can do: its top speed, to judge kernels by, and which numbers it multiplies.
#pragma once

namespace artel {

// Floating-point operations a second of one core in fused multiply-adds of the widest vectors that
// this processor has, measured for about 50 ms.
double measure_peak_flops();

// Whether it can multiply bf16 numbers.
bool has_bf16();

}  // namespace artel
