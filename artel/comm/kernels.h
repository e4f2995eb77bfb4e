// SIMD loops behind reduction.h, one version for each instruction set (see kernels.cc).
#pragma once

#include <cstddef>

#include "artel/comm/reduction.h"

namespace artel::comm {

// target[i] = left[i] op right[i]; target may be left or right. `kind` is not `user`.
void combine_pair(ReductionKind kind, ElementType type, const std::byte* left,
                  const std::byte* right, std::byte* target, size_t count);

void divide_elements(ElementType type, std::byte* data, size_t count, size_t divisor);

}  // namespace artel::comm
