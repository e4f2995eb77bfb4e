// The bytes of each codec, value by value.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "artel/base/bfloat16.h"
#include "artel/base/error.h"
#include "codecs.h"

namespace artel::comm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

const size_t kSizes[] = {0, 1, 7, 31, 32, 33, 255, 256, 257, 1000, 70'001};

// The nearest of 11 (fp16) or 8 (bf16) significant bits, by arithmetic in double.
float rounded(float value, int bits, int smallest_exponent) {
  if (value == 0) return value;
  const int exponent = std::max(std::ilogb(value), smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - bits + 1);
  return static_cast<float>(std::nearbyint(value / unit) * unit);
}

TEST(Codecs, None) {
  const auto values = gradients(1, 1000);
  EXPECT_EQ(round_trip(*make_codec("none"), values), values);
}

TEST(Codecs, HalvesRoundToNearestEven) {
  std::vector<float> values = gradients(2, 10'000);
  for (int exponent = -45; exponent < 15; ++exponent)
    for (const float m : {1.0f, 1.00048828125f, 1.00146484375f, 1.00390625f, 1.01171875f, 1.999f})
      for (const float sign : {-1.0f, 1.0f}) values.push_back(sign * std::ldexp(m, exponent));
  const auto fp16 = round_trip(*make_codec("fp16"), values);
  const auto bf16 = round_trip(*make_codec("bf16"), values);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(fp16[i], rounded(values[i], 11, -14)) << values[i];
    ASSERT_EQ(bf16[i], rounded(values[i], 8, -126)) << values[i];
    // Single values through top-k.
    ASSERT_EQ(bf16[i], float_of_bf16(finite_bf16_of(values[i]))) << values[i];
  }
}

TEST(Codecs, FiniteStaysFiniteAndTheRestStaysVisible) {
  for (const auto& name : codec_names())
    for (const size_t count : kSizes)
      for (const float value : round_trip(
               *make_codec(name), std::vector<float>(std::min<size_t>(count, 5000), kLargest)))
        ASSERT_TRUE(std::isfinite(value)) << name << " of " << count;
  for (const auto& name : codec_names())
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      std::vector<float> values(1000, 1.0f);
      values[500] = bad;
      EXPECT_FALSE(std::isfinite(round_trip(*make_codec(name), values)[500])) << name;
    }
  EXPECT_EQ(round_trip(*make_codec("fp16"), {65520, -1e30f}), (std::vector<float>{65504, -65504}));
}

// A power of two as a factor changes no digit in any codec, from the smallest gradients to the
// largest, except in fp16, whose range is limited.
TEST(Codecs, SizeChangesNothing) {
  for (const auto& name : codec_names()) {
    if (name == "fp16") continue;
    const auto codec = make_codec(name);
    const auto values = gradients(11, 3000);
    const auto expected = round_trip(*codec, values);
    for (const int exponent : {-80, -60, -40, 40, 63, 64, 65, 100, 124}) {
      auto scaled = values;
      for (float& value : scaled) value = std::ldexp(value, exponent);
      auto decoded = round_trip(*codec, scaled);
      for (float& value : decoded) value = std::ldexp(value, -exponent);
      EXPECT_EQ(decoded, expected) << name << " at 2^" << exponent;
    }
  }
}

// The same with artel::philox and plain arithmetic.
TEST(Codecs, Int8RoundsByPhilox) {
  const auto codec = make_codec("int8");
  const CodecContext context{5, 17, 3};
  for (const size_t count : kSizes) {
    const auto values = gradients(3, count);
    const auto decoded = round_trip(*codec, values, context);
    for (size_t i = 0; i < count; ++i) {
      const size_t block = i / 256, e = i % 256, group = e / 32, j = e % 32;
      float largest = 0;
      for (size_t k = block * 256; k < std::min(count, block * 256 + 256); ++k)
        largest = std::max(largest, std::fabs(values[k]));
      const auto word = philox(context.key(), block * 32 + j, 0)[group / 2];
      const double u = ((word >> 16 * (group % 2) & 0xffff) + 0.5) / 65536;
      const double exact = values[i] * 127.0 / largest + u;
      const double code = decoded[i] / (largest / 127.0f);
      // Where the sum is a hair from a whole number, either side is right.
      ASSERT_NEAR(code, std::floor(exact),
                  std::fabs(exact - std::round(exact)) < 1e-4 ? 1.001 : 1e-3)
          << i << " of " << count;
    }
  }
}

TEST(Codecs, Int8IsUnbiased) {
  const auto codec = make_codec("int8");
  std::vector<float> values(256, 0.3f);
  values[0] = 127;  // so that the scale is one
  double sum = 0;
  const int steps = 400;
  for (int step = 0; step < steps; ++step) {
    const auto decoded = round_trip(*codec, values, {1, step, 0});
    for (size_t i = 1; i < values.size(); ++i) {
      ASSERT_TRUE(decoded[i] == 0 || decoded[i] == 1);
      sum += decoded[i];
    }
  }
  EXPECT_NEAR(sum / (steps * 255.0), 0.3, 0.006);  // four deviations
}

TEST(Codecs, SignKeepsSignsAndTheMeanMagnitudeOfEachBlock) {
  for (const size_t count : kSizes) {
    const auto values = gradients(4, count);
    const auto decoded = round_trip(*make_codec("sign"), values);
    for (size_t begin = 0; begin < count; begin += 256) {
      const size_t end = std::min(count, begin + 256);
      double mean = 0;
      for (size_t i = begin; i < end; ++i) mean += std::fabs(values[i]) / (end - begin);
      for (size_t i = begin; i < end; ++i)
        ASSERT_NEAR(decoded[i], std::copysign(mean, values[i]), 1e-5 * mean) << i;
    }
  }
}

TEST(Codecs, TopKKeepsTheLargest) {
  for (const std::string text : {"top-k 1%", "top-k 0.03%", "top-k 40%", "top-k 100%"})
    for (const size_t count : kSizes) {
      auto values = gradients(5, count);
      for (size_t i = 0; i < count; i += 3) values[i] = 0.25f;  // many equal ones
      std::vector<size_t> order(count);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::fabs(values[a]) > std::fabs(values[b]);
      });
      const double share = std::stod(text.substr(6)) / 100;
      order.resize(std::min(count, static_cast<size_t>(std::ceil(share * count - 1e-9))));
      std::vector<float> expected(count, 0.0f);
      for (const size_t i : order) expected[i] = rounded(values[i], 8, -126);
      ASSERT_EQ(round_trip(*make_codec(text), values), expected) << text << " of " << count;
    }
}

TEST(Codecs, TopKOfValuesThatMisleadTheSample) {
  std::vector<float> values(1'000'000, 0.0f);
  for (size_t i = 400'000; i < 410'000; ++i) values[i] = 1.0f;
  EXPECT_EQ(round_trip(*make_codec("top-k 1%"), values), values);
  std::fill(values.begin(), values.end(), 1.0f);
  const auto decoded = round_trip(*make_codec("top-k 1%"), values);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(decoded[i], i < 10'000 ? 1.0f : 0.0f);
}

TEST(Codecs, PowerSgdIsExactForMatricesOfItsRank) {
  const size_t rows = 60;
  std::vector<float> values(rows * rows + 5, 0.0f);
  for (size_t k = 0; k < 3; ++k) {
    const auto left = gradients(10 + k, rows), right = gradients(20 + k, rows);
    for (size_t i = 0; i < rows * rows; ++i) values[i] += left[i / rows] * right[i % rows];
  }
  for (size_t i = rows * rows; i < values.size(); ++i) values[i] = 7;  // as it is
  EXPECT_LT(distance(round_trip(*make_codec("powersgd 4"), values), values), 1e-4);
  EXPECT_GT(distance(round_trip(*make_codec("powersgd 2"), values), values), 1e-2);
}

TEST(Codecs, SizesAreWhatTheDocumentationSays) {
  const size_t floats = 1 << 20;
  const auto ratio = [&](std::string_view text) {
    return floats * 4.0 / static_cast<double>(make_codec(text)->encoded_bytes(floats));
  };
  EXPECT_EQ(ratio("none"), 1);
  EXPECT_EQ(ratio("fp16"), 2);
  EXPECT_EQ(ratio("bf16"), 2);
  EXPECT_NEAR(ratio("int8"), 3.94, 0.01);
  EXPECT_NEAR(ratio("sign"), 28.4, 0.1);
  EXPECT_NEAR(ratio("top-k 1%"), 126, 1);
  EXPECT_NEAR(ratio("powersgd 4"), 128, 1);
  for (const auto& name : codec_names()) EXPECT_EQ(make_codec(name)->encoded_bytes(0), 0) << name;
}

TEST(Codecs, NamesAreReadAndWritten) {
  for (const auto& name : codec_names()) EXPECT_EQ(make_codec(name)->name(), name);
  EXPECT_EQ(make_codec(" top-k  0.5% ")->name(), "top-k 0.5%");
  EXPECT_EQ(make_codec("powersgd")->name(), "powersgd 4");
}

void expect_refused(std::string_view text, std::string_view expected) {
  try {
    make_codec(text);
    FAIL() << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

TEST(Codecs, BadNamesAreRefused) {
  expect_refused("fp61", "did you mean 'fp16'");
  expect_refused("topk 1%", "did you mean 'top-k'");
  expect_refused("", "expected one of none, fp16");
  expect_refused("int8 3", "expected nothing");
  expect_refused("top-k 1", "expected a percentage");
  expect_refused("top-k 0%", "expected a number");
  expect_refused("top-k 101%", "expected a number");
  expect_refused("top-k x%", "expected a number");
  expect_refused("powersgd 0", "expected a number");
  expect_refused("powersgd 1.5", "whole number");
}

TEST(Codecs, EqualContextsGiveEqualBytes) {
  const auto values = gradients(6, 50'000);
  for (const auto& name : codec_names()) {
    const auto codec = make_codec(name);
    const auto first = encoded(*codec, values, {1, 2, 3});
    EXPECT_EQ(first, encoded(*make_codec(name), values, {1, 2, 3})) << name;
    if (name != "int8") continue;
    EXPECT_NE(first, encoded(*codec, values, {0, 2, 3}));
    EXPECT_NE(first, encoded(*codec, values, {1, 0, 3}));
    EXPECT_NE(first, encoded(*codec, values, {1, 2, 0}));
  }
}

TEST(Codecs, MessagesMayLieAtAnyAddress) {
  const auto values = gradients(7, 1001);
  for (const auto& name : codec_names()) {
    const auto codec = make_codec(name);
    const auto expected = round_trip(*codec, values);
    std::vector<std::byte> room(codec->encoded_bytes(values.size()) + 1);
    codec->encode({}, values, std::span(room).subspan(1));
    std::vector<float> decoded(values.size(), 0.0f);
    codec->decode_add(std::span(room).subspan(1), decoded);
    EXPECT_EQ(decoded, expected) << name;
  }
}

TEST(Codecs, DamagedMessagesAreBounded) {
  Random random{8};
  for (const auto& name : codec_names())
    for (const size_t count : {1, 33, 257, 5000}) {
      const auto codec = make_codec(name);
      const auto good = encoded(*codec, gradients(9, count));
      std::vector<float> sum(count);
      for (const size_t size : {size_t{0}, good.size() - 1, good.size() + 1})
        EXPECT_THROW(codec->decode_add(std::vector<std::byte>(size), sum), Error) << name;
      for (int repeat = 0; repeat < 300; ++repeat) {
        auto bytes = good;
        for (auto flips = random.below(8); flips > 0; --flips)
          bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
        try {
          codec->decode_add(bytes, sum);
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        }
      }
    }
  const auto top = make_codec("top-k 1%");
  std::vector<float> sum(5000);
  for (const int fill : {0, 255})
    EXPECT_THROW(top->decode_add(std::vector<std::byte>(top->encoded_bytes(sum.size()),
                                                        static_cast<std::byte>(fill)),
                                 sum),
                 Error);
}

}  // namespace
}  // namespace artel::comm
