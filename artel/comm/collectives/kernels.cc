#include "artel/comm/collectives/kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "artel/base/bfloat16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/collectives/kernels.cc"
#include "hwy/foreach_target.h"  // compiles this file again for each instruction set
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Signed overflow wraps: the arithmetic is done without a sign.
template <typename T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::common_type<T>>::type;

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Multiply {
  template <typename T>
  static T apply(T a, T b) {
    // Through 64 bits, because two unsigned 16-bit numbers are promoted to a signed int.
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};
// NaN wins over any number, on either side; the hardware's minimum and maximum would keep the
// operand of one fixed side.
struct Min {
  template <typename T>
  static T apply(T a, T b) {
    return a <= b || a != a ? a : b;
  }
};
struct Max {
  template <typename T>
  static T apply(T a, T b) {
    return a >= b || a != a ? a : b;
  }
};

// Plain loops: compiled for each instruction set, the compiler turns them into full vectors.
template <typename Operation, typename T>
HWY_ATTR void pair_loop(const T* left, const T* right, T* target, size_t count) {
  for (size_t i = 0; i < count; ++i) target[i] = Operation::apply(left[i], right[i]);
}

// The same operations on vectors of floating-point numbers.
template <typename V>
HWY_INLINE V apply_vector(Add, V a, V b) {
  return hn::Add(a, b);
}
template <typename V>
HWY_INLINE V apply_vector(Multiply, V a, V b) {
  return hn::Mul(a, b);
}
template <typename V>
HWY_INLINE V apply_vector(Min, V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
}
template <typename V>
HWY_INLINE V apply_vector(Max, V a, V b) {
  return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
}

// Four vectors: the number of additions that the processor can have in flight.
template <typename Tag>
struct Four {
  using V = hn::Vec<Tag>;
  V a, b, c, d;

  static HWY_INLINE Four load(Tag tag, const hn::TFromD<Tag>* from) {
    const size_t lanes = hn::Lanes(tag);
    return {hn::LoadU(tag, from), hn::LoadU(tag, from + lanes), hn::LoadU(tag, from + 2 * lanes),
            hn::LoadU(tag, from + 3 * lanes)};
  }
  template <typename Operation>
  HWY_INLINE Four combined(const Four& other) const {
    constexpr Operation kOperation;
    return {apply_vector(kOperation, a, other.a), apply_vector(kOperation, b, other.b),
            apply_vector(kOperation, c, other.c), apply_vector(kOperation, d, other.d)};
  }
  HWY_INLINE Four operator+(const Four& other) const { return combined<Add>(other); }
  // From element i on in every target.
  HWY_INLINE void store(Tag tag, std::span<std::byte* const> targets, size_t i, V factor) const {
    const size_t lanes = hn::Lanes(tag);
    const Four x{hn::Mul(a, factor), hn::Mul(b, factor), hn::Mul(c, factor), hn::Mul(d, factor)};
    for (std::byte* target : targets) {
      auto* out = reinterpret_cast<hn::TFromD<Tag>*>(target) + i;
      hn::StoreU(x.a, tag, out);
      hn::StoreU(x.b, tag, out + lanes);
      hn::StoreU(x.c, tag, out + 2 * lanes);
      hn::StoreU(x.d, tag, out + 3 * lanes);
    }
  }
};

// One pass over memory: writes find the data that was read still in the first-level cache.
template <typename Operation, typename T>
HWY_ATTR void fold_loop(std::span<const std::byte* const> sources,
                        std::span<std::byte* const> targets, size_t count, T scale) {
  const hn::ScalableTag<T> tag;
  const size_t lanes = hn::Lanes(tag);
  const auto factor = hn::Set(tag, scale);
  const auto source = [&](size_t s) { return reinterpret_cast<const T*>(sources[s]); };
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto result = Four<decltype(tag)>::load(tag, source(0) + i);
    for (size_t s = 1; s < sources.size(); ++s)
      result = result.template combined<Operation>(Four<decltype(tag)>::load(tag, source(s) + i));
    result.store(tag, targets, i, factor);
  }
  for (; i < count; ++i) {
    T value = source(0)[i];
    for (size_t s = 1; s < sources.size(); ++s) value = Operation::apply(value, source(s)[i]);
    if (scale != 1) value *= scale;
    for (std::byte* target : targets) reinterpret_cast<T*>(target)[i] = value;
  }
}

template <typename T>
HWY_ATTR void fold_kind(ReductionKind kind, std::span<const std::byte* const> sources,
                        std::span<std::byte* const> targets, size_t count, size_t divisor) {
  switch (kind) {
    case ReductionKind::min:
      return fold_loop<Min, T>(sources, targets, count, 1);
    case ReductionKind::max:
      return fold_loop<Max, T>(sources, targets, count, 1);
    case ReductionKind::product:
      return fold_loop<Multiply, T>(sources, targets, count, 1);
    case ReductionKind::mean:
      return fold_loop<Add, T>(sources, targets, count, 1 / static_cast<T>(divisor));
    default:
      return fold_loop<Add, T>(sources, targets, count, 1);
  }
}

HWY_ATTR void fold(ReductionKind kind, ElementType type, std::span<const std::byte* const> sources,
                   std::span<std::byte* const> targets, size_t count, size_t divisor) {
  if (type == ElementType::f32)
    fold_kind<float>(kind, sources, targets, count, divisor);
  else
    fold_kind<double>(kind, sources, targets, count, divisor);
}

// The sum of `kCount` values, cut in two where lane_split cuts.
template <size_t kCount, typename Load>
HWY_INLINE auto tree_sum(Load load, size_t first) {
  if constexpr (kCount == 1) {
    return load(first);
  } else {
    constexpr size_t kLeft = std::bit_floor(kCount - 1);
    return tree_sum<kLeft>(load, first) + tree_sum<kCount - kLeft>(load, first + kLeft);
  }
}

template <size_t kCount, typename T>
HWY_ATTR void tree_loop(std::span<const std::byte* const> sources,
                        std::span<std::byte* const> targets, size_t count, T scale) {
  std::array<const T*, kCount> from;
  for (size_t s = 0; s < kCount; ++s) from[s] = reinterpret_cast<const T*>(sources[s]);
  const hn::ScalableTag<T> tag;
  const size_t lanes = hn::Lanes(tag);
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto sum = tree_sum<kCount>(
        [&](size_t s) HWY_ATTR { return Four<decltype(tag)>::load(tag, from[s] + i); }, 0);
    sum.store(tag, targets, i, hn::Set(tag, scale));
  }
  for (; i < count; ++i) {
    const T value = scale * tree_sum<kCount>([&](size_t s) { return from[s][i]; }, 0);
    for (std::byte* target : targets) reinterpret_cast<T*>(target)[i] = value;
  }
}

template <typename T>
HWY_ATTR void tree_of_type(std::span<const std::byte* const> sources,
                           std::span<std::byte* const> targets, size_t count, size_t divisor) {
  const T scale = 1 / static_cast<T>(divisor);
  const auto run = [&]<size_t... kIndex>(std::index_sequence<kIndex...>) HWY_ATTR {
    ((sources.size() == kIndex + 1 ? tree_loop<kIndex + 1, T>(sources, targets, count, scale)
                                   : void()),
     ...);
  };
  run(std::make_index_sequence<kTreeSources>());
}

HWY_ATTR void fold_tree(ElementType type, std::span<const std::byte* const> sources,
                        std::span<std::byte* const> targets, size_t count, size_t divisor) {
  if (type == ElementType::f32)
    tree_of_type<float>(sources, targets, count, divisor);
  else
    tree_of_type<double>(sources, targets, count, divisor);
}

constexpr size_t kHalfBlock = 512;

HWY_ATTR void widen(ElementType type, const uint16_t* from, float* to, size_t count) {
  if (type == ElementType::bf16) {
    for (size_t i = 0; i < count; ++i) to[i] = float_of_bf16(from[i]);
    return;
  }
  const hn::ScalableTag<float> floats;
  const hn::Rebind<hwy::float16_t, decltype(floats)> halves;
  const auto* source = reinterpret_cast<const hwy::float16_t*>(from);
  const size_t lanes = hn::Lanes(floats);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::PromoteTo(floats, hn::LoadU(halves, source + i)), floats, to + i);
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> one_half;
  for (; i < count; ++i)
    hn::StoreU(hn::PromoteTo(one, hn::LoadU(one_half, source + i)), one, to + i);
}

HWY_ATTR void narrow(ElementType type, const float* from, uint16_t* to, size_t count) {
  if (type == ElementType::bf16) {
    for (size_t i = 0; i < count; ++i) to[i] = bf16_of(from[i]);
    return;
  }
  const hn::ScalableTag<float> floats;
  const hn::Rebind<hwy::float16_t, decltype(floats)> halves;
  auto* target = reinterpret_cast<hwy::float16_t*>(to);
  const size_t lanes = hn::Lanes(floats);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::DemoteTo(halves, hn::LoadU(floats, from + i)), halves, target + i);
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> one_half;
  for (; i < count; ++i)
    hn::StoreU(hn::DemoteTo(one_half, hn::LoadU(one, from + i)), one_half, target + i);
}

template <typename Operation>
HWY_ATTR void half_loop(ElementType type, const uint16_t* left, const uint16_t* right,
                        uint16_t* target, size_t count) {
  alignas(64) float a[kHalfBlock];
  alignas(64) float b[kHalfBlock];
  for (size_t begin = 0; begin < count; begin += kHalfBlock) {
    const size_t n = std::min(kHalfBlock, count - begin);
    widen(type, left + begin, a, n);
    widen(type, right + begin, b, n);
    pair_loop<Operation, float>(a, b, a, n);
    narrow(type, a, target + begin, n);
  }
}

template <typename T>
T* as(std::byte* data) {
  return reinterpret_cast<T*>(data);
}
template <typename T>
const T* as(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}

template <typename Operation>
HWY_ATTR void pair_of_type(ElementType type, const std::byte* left, const std::byte* right,
                           std::byte* target, size_t count) {
  const auto loop = [&]<typename T>(T) HWY_ATTR {
    pair_loop<Operation, T>(as<T>(left), as<T>(right), as<T>(target), count);
  };
  switch (type) {
    case ElementType::f32:
      return loop(float{});
    case ElementType::f64:
      return loop(double{});
    case ElementType::f16:
    case ElementType::bf16:
      return half_loop<Operation>(type, as<uint16_t>(left), as<uint16_t>(right),
                                  as<uint16_t>(target), count);
    case ElementType::i8:
      return loop(int8_t{});
    case ElementType::u8:
      return loop(uint8_t{});
    case ElementType::i16:
      return loop(int16_t{});
    case ElementType::i32:
      return loop(int32_t{});
    case ElementType::i64:
      return loop(int64_t{});
  }
}

HWY_ATTR void combine_pair(ReductionKind kind, ElementType type, const std::byte* left,
                           const std::byte* right, std::byte* target, size_t count) {
  switch (kind) {
    case ReductionKind::min:
      return pair_of_type<Min>(type, left, right, target, count);
    case ReductionKind::max:
      return pair_of_type<Max>(type, left, right, target, count);
    case ReductionKind::product:
      return pair_of_type<Multiply>(type, left, right, target, count);
    default:
      return pair_of_type<Add>(type, left, right, target, count);
  }
}

HWY_ATTR void divide_elements(ElementType type, std::byte* data, size_t count, size_t divisor) {
  const auto loop = [&]<typename T>(T) HWY_ATTR {
    T* values = as<T>(data);
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(values[i] / static_cast<std::make_signed_t<size_t>>(divisor));
  };
  const auto scale = [&]<typename T>(T inverse) HWY_ATTR {
    T* values = as<T>(data);
    for (size_t i = 0; i < count; ++i) values[i] *= inverse;
  };
  switch (type) {
    case ElementType::f32:
      return scale(1.0f / static_cast<float>(divisor));
    case ElementType::f64:
      return scale(1.0 / static_cast<double>(divisor));
    case ElementType::f16:
    case ElementType::bf16: {
      alignas(64) float block[kHalfBlock];
      for (size_t begin = 0; begin < count; begin += kHalfBlock) {
        const size_t n = std::min(kHalfBlock, count - begin);
        uint16_t* values = as<uint16_t>(data) + begin;
        widen(type, values, block, n);
        for (size_t i = 0; i < n; ++i) block[i] /= static_cast<float>(divisor);
        narrow(type, block, values, n);
      }
      return;
    }
    case ElementType::i8:
      return loop(int8_t{});
    case ElementType::u8:
      return loop(uint8_t{});
    case ElementType::i16:
      return loop(int16_t{});
    case ElementType::i32:
      return loop(int32_t{});
    case ElementType::i64:
      return loop(int64_t{});
  }
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {

HWY_EXPORT(combine_pair);
HWY_EXPORT(divide_elements);
HWY_EXPORT(fold);
HWY_EXPORT(fold_tree);

void combine_pair(ReductionKind kind, ElementType type, const std::byte* left,
                  const std::byte* right, std::byte* target, size_t count) {
  HWY_DYNAMIC_DISPATCH(combine_pair)(kind, type, left, right, target, count);
}

void fold(ReductionKind kind, ElementType type, std::span<const std::byte* const> sources,
          std::span<std::byte* const> targets, size_t count, size_t divisor) {
  HWY_DYNAMIC_DISPATCH(fold)(kind, type, sources, targets, count, divisor);
}

void fold_tree(ElementType type, std::span<const std::byte* const> sources,
               std::span<std::byte* const> targets, size_t count, size_t divisor) {
  HWY_DYNAMIC_DISPATCH(fold_tree)(type, sources, targets, count, divisor);
}

void divide_elements(ElementType type, std::byte* data, size_t count, size_t divisor) {
  HWY_DYNAMIC_DISPATCH(divide_elements)(type, data, count, divisor);
}

}  // namespace artel::comm
#endif
