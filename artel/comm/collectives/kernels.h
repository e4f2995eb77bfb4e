// SIMD loops behind reduction.h, one version per instruction set (see kernels.cc).
#pragma once

#include <cstddef>
#include <span>

#include "artel/comm/collectives/reduction.h"

namespace artel::comm {

// target[i] = left[i] op right[i]; target may be left or right. `kind` is not `user`.
void combine_pair(ReductionKind kind, ElementType type, const std::byte* left,
                  const std::byte* right, std::byte* target, size_t count);

// Every target = sources[0] op sources[1] op ..., each element read and written once; targets may
// be the sources. For f32 and f64; a mean is multiplied by 1 / divisor.
void fold(ReductionKind kind, ElementType type, std::span<const std::byte* const> sources,
          std::span<std::byte* const> targets, size_t count, size_t divisor);

// The sum, or mean, in the order of a tree of equal leaves (see lane_tree.h). For f32 and f64 and
// up to kTreeSources sources.
constexpr size_t kTreeSources = 8;
void fold_tree(ElementType type, std::span<const std::byte* const> sources,
               std::span<std::byte* const> targets, size_t count, size_t divisor);

void divide_elements(ElementType type, std::byte* data, size_t count, size_t divisor);

}  // namespace artel::comm
