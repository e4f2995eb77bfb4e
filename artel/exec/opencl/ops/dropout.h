// Dropout parameters, the same as on the CPU (exec/cpu/elementwise/dropout.cc).
#pragma once

namespace artel::opencl {

struct DropoutRule {
  explicit DropoutRule(double probability);

  int threshold;  // elements are dropped if the upper 24 bits of their random word are smaller
  float scale;    // factor of the remaining elements
};

}  // namespace artel::opencl
