// Element-wise reduction of buffers.
//
// Pure functions, with SIMD. They fold from left to right and round after each operation, so
// splitting a fold into several calls does not change its result. f16 and bf16 are combined in f32
// and rounded to nearest even.
//
//   double largest = 3;
//   if (artel::comm::Group* group = cluster.group())
//     group->all_reduce(std::as_writable_bytes(std::span(&largest, 1)),
//                       artel::comm::ElementType::f64, artel::comm::ReductionKind::max);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "artel/comm/element.h"

namespace artel::comm {

// `min` and `max` propagate NaN, like sums, so all ranks see it.
enum class ReductionKind : uint8_t { sum, mean, min, max, product, user };

std::string_view to_string(ReductionKind kind);

struct Reduction {
  // accumulator[i] = f(accumulator[i], input[i]) for i < count; associative and commutative.
  using Function =
      std::function<void(std::byte* accumulator, const std::byte* input, size_t count)>;

  Reduction(ReductionKind kind = ReductionKind::sum) : kind(kind) {}
  Reduction(Function function) : kind(ReductionKind::user), function(std::move(function)) {}

  ReductionKind kind;
  Function function;
};

// accumulator = accumulator op input. `mean` adds; see `divide`.
void accumulate(const Reduction& reduction, ElementType type, std::byte* accumulator,
                const std::byte* input, size_t count);

// Every target = sources[0] op sources[1] op ...; targets may alias sources. At least one source.
// For `mean` the result is divided by `divisor`.
void combine(const Reduction& reduction, ElementType type,
             std::span<const std::byte* const> sources, std::span<std::byte* const> targets,
             size_t count, size_t divisor);

// The last step of a mean: data[i] /= divisor. Integer division rounds towards zero.
void divide(ElementType type, std::byte* data, size_t count, size_t divisor);

}  // namespace artel::comm
