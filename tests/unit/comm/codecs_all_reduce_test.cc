// Codecs in a group and over many steps, with threads as ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "artel/base/error.h"
#include "artel/comm/codecs/codec.h"
#include "codecs.h"
#include "ranks.h"

namespace artel::comm {
namespace {

// The sum of everything decoded follows the sum of all inputs: the difference is one residual,
// which does not grow, so the relative error falls as one over the number of steps.
TEST(ErrorFeedback, SumsConverge) {
  const size_t count = 3000;
  for (const auto& name : codec_names()) {
    const auto codec = make_codec(name);
    std::vector<float> residual(count, 0.0f), inputs(count, 0.0f), outputs(count, 0.0f);
    std::vector<std::byte> message(codec->encoded_bytes(count));
    const auto constant = gradients(1, count);
    double early = 0;
    for (int step = 0; step < 1000; ++step) {
      auto values = gradients(100 + step, count);
      for (size_t i = 0; i < count; ++i) {
        values[i] = 0.1f * values[i] + constant[i];
        inputs[i] += values[i];
      }
      compress(*codec, {1, step, 0}, values, residual, message);
      codec->decode_add(message, outputs);
      if (step == 99) early = distance(outputs, inputs);
    }
    const double late = distance(outputs, inputs);
    EXPECT_LT(late, 0.1) << name;
    EXPECT_LT(late, 0.3 * early + 1e-5) << name;
  }
}

TEST(ErrorFeedback, ABadStepIsNotRemembered) {
  for (const auto& name : codec_names()) {
    const auto codec = make_codec(name);
    auto values = gradients(2, 1000);
    std::vector<float> residual(values.size(), 0.0f);
    std::vector<std::byte> message(codec->encoded_bytes(values.size()));
    values[3] = std::numeric_limits<float>::quiet_NaN();
    compress(*codec, {}, values, residual, message);
    compress(*codec, {}, gradients(3, values.size()), residual, message);
    std::vector<float> decoded(values.size(), 0.0f);
    codec->decode_add(message, decoded);
    for (const float value : decoded) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

struct Outcome {
  std::vector<std::vector<float>> results;  // of each rank, all steps one after the other
  std::vector<size_t> sent;
};

std::vector<float> input(int rank, int step, size_t count) {
  return gradients(static_cast<uint64_t>(1000 * rank + step), count);
}

Outcome reduce_steps(std::string_view name, int size, size_t count, int steps, bool mean,
                     const std::vector<MatrixShape>& matrices = {}) {
  Outcome outcome{std::vector<std::vector<float>>(size), std::vector<size_t>(size)};
  with_ranks(size, [&](Group& group) {
    const auto codec = make_codec(name);
    ErrorFeedback feedback{.matrices = matrices};
    for (int step = 0; step < steps; ++step) {
      auto values = input(group.rank(), step, count);
      const int64_t before = group.traffic().sent_bytes;
      codec->all_reduce(group, {7, step, 1}, feedback, values, mean);
      outcome.sent[group.rank()] += static_cast<size_t>(group.traffic().sent_bytes - before);
      auto& result = outcome.results[group.rank()];
      result.insert(result.end(), values.begin(), values.end());
    }
  });
  return outcome;
}

class CodecGroups : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(World, CodecGroups, testing::Values(1, 2, 3, 4));

TEST_P(CodecGroups, AllRanksGetTheSameBitsEveryTime) {
  for (const auto& name : codec_names())
    for (const size_t count : {0, 1, 255, 257, 20'001}) {
      SCOPED_TRACE(fmt::format("{} of {} floats", name, count));
      const Outcome first = reduce_steps(name, GetParam(), count, 3, true);
      for (const auto& result : first.results) ASSERT_EQ(result, first.results[0]);
      ASSERT_EQ(reduce_steps(name, GetParam(), count, 3, true).results, first.results);
    }
}

TEST_P(CodecGroups, ResultsAreNearTheSum) {
  const int size = GetParam();
  const size_t count = 20'001;
  std::vector<float> expected(count, 0.0f);
  for (int rank = 0; rank < size; ++rank) {
    const auto values = input(rank, 0, count);
    for (size_t i = 0; i < count; ++i) expected[i] += values[i];
  }
  const std::pair<const char*, double> bounds[] = {
      {"none", 1e-6}, {"fp16", 1e-3}, {"bf16", 5e-3}, {"int8", 3e-2}, {"top-k 100%", 5e-3}};
  for (const auto& [name, bound] : bounds) {
    EXPECT_LT(distance(reduce_steps(name, size, count, 1, false).results[0], expected), bound)
        << name;
    auto mean = reduce_steps(name, size, count, 1, true).results[0];
    for (float& value : mean) value *= static_cast<float>(size);
    EXPECT_LT(distance(mean, expected), bound) << name;
  }
}

// Both stages feed back: after many steps with the same input, the average result is the sum.
TEST_P(CodecGroups, AverageOverStepsConverges) {
  const int size = GetParam();
  const size_t count = 2000;
  std::vector<float> expected(count, 0.0f);
  for (int rank = 0; rank < size; ++rank) {
    const auto values = input(rank, 0, count);
    for (size_t i = 0; i < count; ++i) expected[i] += values[i];
  }
  const int steps = 200;
  for (const std::string name : {"int8", "sign", "top-k 10%", "powersgd 4"})
    with_ranks(size, [&](Group& group) {
      const auto codec = make_codec(name);
      ErrorFeedback feedback;
      const auto own = input(group.rank(), 0, count);
      std::vector<float> average(count, 0.0f);
      for (int step = 0; step < steps; ++step) {
        auto values = own;
        codec->all_reduce(group, {7, step, 1}, feedback, values, false);
        for (size_t i = 0; i < count; ++i) average[i] += values[i] / steps;
      }
      EXPECT_LT(distance(average, expected), 0.1) << name;
    });
}

// Also over several steps with feedback: powers of two as factors change no digit, so results at
// 1e19 and beyond, where squares overflow, equal those at 1.
TEST_P(CodecGroups, SizeChangesNothing) {
  const size_t count = 1500;
  for (const auto& name : codec_names()) {
    if (name == "fp16") continue;  // has a range of its own
    std::vector<std::vector<float>> results;
    for (const int exponent : {0, -60, 63, 64, 100, 118})
      with_ranks(GetParam(), [&](Group& group) {
        const auto codec = make_codec(name);
        ErrorFeedback feedback;
        std::vector<float> all;
        for (int step = 0; step < 5; ++step) {
          auto values = input(group.rank(), step, count);
          for (float& value : values) value = std::ldexp(value, exponent);
          codec->all_reduce(group, {7, step, 1}, feedback, values, false);
          for (const float value : values) all.push_back(std::ldexp(value, -exponent));
        }
        if (group.rank() == 0) results.push_back(all);
      });
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << name;
  }
}

TEST_P(CodecGroups, BytesSentAreCounted) {
  const auto size = static_cast<size_t>(GetParam());
  const size_t count = 256 * 12 * 10;
  for (const auto& name : codec_names()) {
    const auto encoded = static_cast<double>(make_codec(name)->encoded_bytes(count));
    const double expected = 2.0 * (size - 1) / size * encoded;
    // Short sums are copied to all ranks at once.
    const double most = encoded <= 16 << 10 ? std::max(expected, (size - 1) * encoded) : expected;
    const double heads = 64.0 * size;
    for (const size_t sent : reduce_steps(name, GetParam(), count, 1, true).sent) {
      EXPECT_GE(sent, expected - heads) << name;
      EXPECT_LE(sent, most + heads) << name;
    }
  }
}

TEST(PowerSgd, FindsTheRankOfMatricesAndSendsVectorsAsTheyAre) {
  const size_t rows = 40, columns = 90, biases = 40;
  const auto left = gradients(1, rows), right = gradients(2, columns), bias = gradients(3, biases);
  std::vector<float> bucket;
  for (const float p : left)
    for (const float q : right) bucket.push_back(p * q);
  bucket.insert(bucket.end(), bias.begin(), bias.end());
  for (const bool shapes_given : {true, false})
    with_ranks(3, [&](Group& group) {
      ErrorFeedback feedback;
      if (shapes_given) feedback.matrices = {{rows, columns}, {1, biases}};
      auto values = bucket;
      for (float& value : values) value *= static_cast<float>(group.rank() + 1);
      const int64_t before = group.traffic().sent_bytes;
      make_codec("powersgd 1")->all_reduce(group, {1, 0, 0}, feedback, values, true);
      const int64_t sent = group.traffic().sent_bytes - before;
      for (float& value : values) value /= 2;  // the mean of 1, 2 and 3
      // It has rank one only in its own shape.
      if (shapes_given) {
        EXPECT_LT(distance(values, bucket), 1e-5);
        EXPECT_LT(sent, static_cast<int64_t>(bucket.size() * sizeof(float) / 10));
      } else {
        EXPECT_GT(distance(values, bucket), 0.1);
      }
    });
}

TEST(PowerSgd, TheNextStepStartsFromTheLastDirections) {
  const size_t count = 100 * 100;
  const std::vector<MatrixShape> matrices{{100, 100}};
  std::vector<float> values(count);
  for (size_t k = 0; k < 100; ++k) {  // singular values 1, 0.8, 0.64, ...
    const auto left = gradients(10 + k, 100), right = gradients(200 + k, 100);
    for (size_t i = 0; i < count; ++i)
      values[i] += std::pow(0.8f, static_cast<float>(k)) * left[i / 100] * right[i % 100];
  }
  with_ranks(1, [&](Group& group) {
    const auto codec = make_codec("powersgd 2");
    ErrorFeedback feedback{.matrices = matrices};
    double first = 0, last = 0;
    for (int step = 0; step < 10; ++step) {
      feedback.of_values.assign(count, 0.0f);
      auto result = values;
      codec->all_reduce(group, {1, step, 0}, feedback, result, true);
      last = distance(result, values);
      if (step == 0) first = last;
    }
    EXPECT_LT(last, first);
  });
}

TEST(PowerSgd, ShapesMustFitTheBucket) {
  const auto errors = run_ranks(1, [](Group& group) {
    ErrorFeedback feedback{.matrices = {{3, 4}}};
    std::vector<float> values(13);
    make_codec("powersgd 4")->all_reduce(group, {}, feedback, values, true);
  });
  EXPECT_NE(errors[0].find("got 12 floats, expected 13"), std::string::npos) << errors[0];
}

}  // namespace
}  // namespace artel::comm
