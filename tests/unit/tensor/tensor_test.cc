#include "artel/tensor/tensor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "artel/base/bfloat16.h"

namespace artel {
namespace {

TEST(Shape, Arithmetic) {
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{5, 0}).elements(), 0);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}).elements(), Error);
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(row_major_strides({2, 3, 4}), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(broadcast({4, 1, 3}, {2, 1}), (Shape{4, 2, 3}));
  EXPECT_THROW(broadcast({4}, {3}), Error);
}

TEST(Tensor, SharesAndClones) {
  Tensor a = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  Tensor view = a.rows(1, 2);
  Tensor copy = a.clone();
  view.values<float>()[0] = 9;
  EXPECT_EQ(a.values<float>()[2], 9);
  EXPECT_EQ(copy.values<float>()[2], 3);
  EXPECT_EQ(a.reshaped({4}).values<float>()[2], 9);
  EXPECT_THROW(a.reshaped({5}), Error);
  EXPECT_THROW(a.values<int32_t>(), Error);
}

TEST(Tensor, Converts) {
  const Tensor a = Tensor::from<float>({4}, {1.5f, -2.25f, 300.0f, NAN});
  const Tensor i = a.to(DType::i8);
  EXPECT_EQ(i.values<int8_t>()[0], 1);
  EXPECT_EQ(i.values<int8_t>()[1], -2);
  EXPECT_EQ(i.values<int8_t>()[2], 127);
  EXPECT_EQ(i.values<int8_t>()[3], 0);
  const Tensor half = a.to(DType::f16).to(DType::f32);
  EXPECT_EQ(half.values<float>()[1], -2.25f);
  EXPECT_TRUE(std::isnan(half.values<float>()[3]));
}

// Every half and bfloat16 value survives a round trip through float.
TEST(DType, SixteenBitRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto h = static_cast<uint16_t>(bits);
    const float from_half = half_to_float(h), from_brain = bfloat16_to_float(h);
    if (!std::isnan(from_half)) {
      ASSERT_EQ(float_to_half(from_half), h);
    }
    if (!std::isnan(from_brain)) {
      ASSERT_EQ(float_to_bfloat16(from_brain), h);
    }
  }
}

TEST(DType, BrainFloatsRoundToNearestEven) {
  EXPECT_EQ(float_to_bfloat16(1.0f + 0x1p-8f), 0x3f80);  // a tie, to even
  EXPECT_EQ(float_to_bfloat16(1.0f + 0x1.8p-7f), 0x3f82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(finite_bf16_of(std::numeric_limits<float>::max()), 0x7f7f);
  EXPECT_EQ(finite_bf16_of(-std::numeric_limits<float>::infinity()), 0xff80);
  // Every NaN becomes the same one, whatever its bits.
  EXPECT_EQ(float_to_bfloat16(std::bit_cast<float>(0x7fa12345u)), 0x7fc0);
  EXPECT_EQ(finite_bf16_of(std::bit_cast<float>(0xffffffffu)), 0xffc0);
}

TEST(DType, HalfRoundsToNearestEven) {
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25f), 0x0000);  // a tie with zero
  EXPECT_EQ(float_to_half(0x1.8p-25f), 0x0001);
  EXPECT_EQ(float_to_half(1.0f + 0x1p-11f), 0x3c00);  // a tie, to even
  EXPECT_EQ(float_to_half(1.0f + 0x1.8p-11f), 0x3c01);
}

}  // namespace
}  // namespace artel
