#include "artel/comm/collectives/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace artel::comm {
namespace {

template <typename T>
std::vector<T> combined(ReductionKind kind, ElementType type,
                        const std::vector<std::vector<T>>& in) {
  std::vector<T> out(in[0].size());
  std::vector<const std::byte*> sources;
  for (const auto& values : in)
    sources.push_back(reinterpret_cast<const std::byte*>(values.data()));
  std::byte* const target = reinterpret_cast<std::byte*>(out.data());
  combine(kind, type, sources, {&target, 1}, out.size(), in.size());
  return out;
}

template <typename T>
void check_all_kinds(ElementType type) {
  const std::vector<std::vector<T>> in{{3, 1, 7}, {2, 5, 7}, {4, 3, 1}};
  EXPECT_EQ(combined(ReductionKind::sum, type, in), (std::vector<T>{9, 9, 15}));
  EXPECT_EQ(combined(ReductionKind::min, type, in), (std::vector<T>{2, 1, 1}));
  EXPECT_EQ(combined(ReductionKind::max, type, in), (std::vector<T>{4, 5, 7}));
  EXPECT_EQ(combined(ReductionKind::product, type, in), (std::vector<T>{24, 15, 49}));
  EXPECT_EQ(combined(ReductionKind::mean, type, in), (std::vector<T>{3, 3, 5}));
}

TEST(Reduction, AllKindsOfAllTypes) {
  check_all_kinds<float>(ElementType::f32);
  check_all_kinds<double>(ElementType::f64);
  check_all_kinds<int8_t>(ElementType::i8);
  check_all_kinds<uint8_t>(ElementType::u8);
  check_all_kinds<int16_t>(ElementType::i16);
  check_all_kinds<int32_t>(ElementType::i32);
  check_all_kinds<int64_t>(ElementType::i64);
}

TEST(Reduction, HalvesAreRoundedToNearestEven) {
  // bf16: 1 + 2^-8 is halfway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between the next two.
  const uint16_t one = 0x3f80, tiny = 0x3b80;
  EXPECT_EQ(combined<uint16_t>(ReductionKind::sum, ElementType::bf16, {{one}, {tiny}}),
            std::vector<uint16_t>{0x3f80});
  EXPECT_EQ(combined<uint16_t>(ReductionKind::sum, ElementType::bf16, {{0x3f81}, {tiny}}),
            std::vector<uint16_t>{0x3f82});
  EXPECT_EQ(combined<uint16_t>(ReductionKind::sum, ElementType::bf16, {{0x7fc0}, {one}}),
            std::vector<uint16_t>{0x7fc0});  // NaN stays NaN
  // f16: the same with 2^-11.
  const std::vector<uint16_t> f16_one(37, 0x3c00), f16_tiny(37, 0x1000);
  EXPECT_EQ(combined<uint16_t>(ReductionKind::sum, ElementType::f16, {f16_one, f16_tiny}),
            std::vector<uint16_t>(37, 0x3c00));
  EXPECT_EQ(combined<uint16_t>(ReductionKind::sum, ElementType::f16, {f16_one, f16_one}),
            std::vector<uint16_t>(37, 0x4000));
}

TEST(Reduction, LongOddCountsAndInPlaceTargets) {
  constexpr size_t kCount = 5003;
  std::vector<float> a(kCount), b(kCount), c(kCount);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 1.0f);
  std::iota(c.begin(), c.end(), 2.0f);
  const auto at = [](std::vector<float>& values) {
    return reinterpret_cast<std::byte*>(values.data());
  };
  const std::vector<std::byte*> targets{at(a), at(b), at(c)};
  const std::vector<const std::byte*> sources(targets.begin(), targets.end());
  combine(ReductionKind::sum, ElementType::f32, sources, targets, kCount, 1);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(a[i], 3.0f * static_cast<float>(i) + 3);
    ASSERT_EQ(b[i], a[i]);
    ASSERT_EQ(c[i], a[i]);
  }
}

// Whichever rank has the NaN, at any position in a vector or after the last whole one.
template <typename T>
void check_nan_wins(ElementType type, T nan, T one, T two, const std::function<bool(T)>& is_nan) {
  constexpr size_t kCount = 131;
  for (const ReductionKind kind : {ReductionKind::min, ReductionKind::max})
    for (size_t holder = 0; holder < 3; ++holder) {
      std::vector<std::vector<T>> in(3, std::vector<T>(kCount, one));
      in[1].assign(kCount, two);
      in[holder].assign(kCount, nan);
      for (const T value : combined(kind, type, in))
        ASSERT_TRUE(is_nan(value))
            << to_string(kind) << " of " << to_string(type) << ", source " << holder;
    }
}

TEST(Reduction, ANanWinsMinimaAndMaxima) {
  check_nan_wins<float>(ElementType::f32, std::nanf(""), 1, 2,
                        [](float value) { return std::isnan(value); });
  check_nan_wins<double>(ElementType::f64, std::nan(""), 1, 2,
                         [](double value) { return std::isnan(value); });
  check_nan_wins<uint16_t>(ElementType::f16, 0x7e00, 0x3c00, 0x4000,
                           [](uint16_t bits) { return (bits & 0x7fff) > 0x7c00; });
  check_nan_wins<uint16_t>(ElementType::bf16, 0x7fc0, 0x3f80, 0x4000,
                           [](uint16_t bits) { return (bits & 0x7fff) > 0x7f80; });
}

TEST(Reduction, UserFunction) {
  const Reduction::Function keep_larger_magnitude = [](std::byte* accumulator,
                                                       const std::byte* input, size_t count) {
    auto* a = reinterpret_cast<float*>(accumulator);
    const auto* b = reinterpret_cast<const float*>(input);
    for (size_t i = 0; i < count; ++i)
      if (std::abs(b[i]) > std::abs(a[i])) a[i] = b[i];
  };
  std::vector<float> a{1, -5}, b{-3, 2};
  accumulate(keep_larger_magnitude, ElementType::f32, reinterpret_cast<std::byte*>(a.data()),
             reinterpret_cast<const std::byte*>(b.data()), 2);
  EXPECT_EQ(a, (std::vector<float>{-3, -5}));
}

TEST(Reduction, SignedOverflowWraps) {
  const int32_t top = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(combined<int32_t>(ReductionKind::sum, ElementType::i32, {{top}, {1}}),
            std::vector<int32_t>{std::numeric_limits<int32_t>::min()});
}

}  // namespace
}  // namespace artel::comm
