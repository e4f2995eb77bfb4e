#include "artel/comm/collectives/reduction.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "artel/base/error.h"
#include "artel/comm/collectives/kernels.h"

namespace artel::comm {
namespace {

// A block of the running result stays in the first-level cache while the sources stream by.
constexpr size_t kReduceBlockBytes = 4096;

}  // namespace

std::string_view to_string(ReductionKind kind) {
  constexpr std::array<std::string_view, 6> kNames{"sum", "mean", "min", "max", "product", "user"};
  return kNames[static_cast<size_t>(kind)];
}

void accumulate(const Reduction& reduction, ElementType type, std::byte* accumulator,
                const std::byte* input, size_t count) {
  if (reduction.kind == ReductionKind::user)
    reduction.function(accumulator, input, count);
  else
    combine_pair(reduction.kind, type, accumulator, input, accumulator, count);
}

void combine(const Reduction& reduction, ElementType type,
             std::span<const std::byte* const> sources, std::span<std::byte* const> targets,
             size_t count, size_t divisor) {
  require(!sources.empty(), ErrorKind::internal, "[comm] combine: got no source, expected one");
  const size_t width = size_of(type);
  const bool built_in = reduction.kind != ReductionKind::user;
  if (built_in && (type == ElementType::f32 || type == ElementType::f64)) {
    fold(reduction.kind, type, sources, targets, count, divisor);
    return;
  }
  alignas(64) std::byte block[kReduceBlockBytes];
  for (size_t begin = 0; begin < count; begin += kReduceBlockBytes / width) {
    const size_t n = std::min(kReduceBlockBytes / width, count - begin);
    const size_t offset = begin * width;
    size_t next = 1;
    if (built_in && sources.size() > 1) {
      combine_pair(reduction.kind, type, sources[0] + offset, sources[1] + offset, block, n);
      next = 2;
    } else {
      std::memcpy(block, sources[0] + offset, n * width);
    }
    for (; next < sources.size(); ++next)
      accumulate(reduction, type, block, sources[next] + offset, n);
    if (reduction.kind == ReductionKind::mean) divide(type, block, n, divisor);
    for (std::byte* target : targets) std::memcpy(target + offset, block, n * width);
  }
}

void divide(ElementType type, std::byte* data, size_t count, size_t divisor) {
  divide_elements(type, data, count, divisor);
}

}  // namespace artel::comm
