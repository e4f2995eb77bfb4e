// GGUF files: values, every way to store tensors against numbers worked out by hand, and damage.
#include "artel/tensor/gguf.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_writer.h"

namespace artel {
namespace {

Gguf parse(const std::string& file) { return parse_gguf(make_bytes(file, "model.gguf")); }

std::string problem_of(const std::string& file) {
  return error_of([&] { parse(file); });
}

std::vector<uint8_t> counted_codes(size_t count) {
  std::vector<uint8_t> codes;
  for (size_t i = 0; i < count; ++i) codes.push_back(static_cast<uint8_t>(i | (15 - i % 16) << 4));
  return codes;
}

TEST(Gguf, ReadsValuesOfEachKind) {
  GgufWriter writer;
  writer.add("a.size", uint32_t{7});
  writer.add("a.epsilon", 0.5f);
  writer.add("a.flag", true);
  writer.add("a.name", "llama");
  writer.add("a.tokens", std::vector<std::string>{"x", "", "yz"});
  writer.add("a.kinds", std::vector<int32_t>{1, -3});
  const Gguf file = parse(writer.file());
  EXPECT_EQ(file.integer("a.size"), 7);
  EXPECT_EQ(file.number("a.epsilon"), 0.5);
  EXPECT_EQ(file.number("a.flag"), 1);
  EXPECT_EQ(file.text("a.name"), "llama");
  EXPECT_EQ(file.texts("a.tokens"), (std::vector<std::string>{"x", "", "yz"}));
  EXPECT_EQ(file.numbers("a.kinds"), (std::vector<double>{1, -3}));
  EXPECT_THROW(file.integer("a.epsilon"), Error);
  EXPECT_THROW(file.text("a.size"), Error);
  EXPECT_THROW(file.number("a.absent"), Error);
}

TEST(Gguf, ReadsEveryKindOfTensor) {
  GgufWriter writer;
  writer.add_tensor("plain", {3, 2}, {1, 2, 3, 4, 5, 6});
  writer.add_tensor("half", {2}, 1, raw_bytes(float_to_half(1.5f)) + raw_bytes(float_to_half(-2)));
  writer.add_tensor("q4_0", {32, 1}, 2, gguf_block({0.5f}, counted_codes(16)));
  writer.add_tensor("q4_1", {32, 1}, 3, gguf_block({0.5f, -1}, counted_codes(16)));
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 64; ++i) bytes.push_back(static_cast<uint8_t>(i - 32));
  const auto half = bytes.begin() + 32;
  writer.add_tensor("q8_0", {32, 2}, 8,
                    gguf_block({2}, {bytes.begin(), half}) + gguf_block({4}, {half, bytes.end()}));
  const Gguf file = parse(writer.file());
  ASSERT_EQ(file.tensors.size(), 5);
  const auto numbers = [&](size_t i) { return numbers_of(file.tensors[i]).to(DType::f32); };
  EXPECT_EQ(file.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(numbers(0).values<float>()[5], 6);
  EXPECT_EQ(numbers(1).values<float>()[1], -2);
  for (int i = 0; i < 16; ++i) {
    const auto low = static_cast<float>(i), high = static_cast<float>(15 - i);
    EXPECT_EQ(numbers(2).values<float>()[i], 0.5f * (low - 8));
    EXPECT_EQ(numbers(2).values<float>()[16 + i], 0.5f * (high - 8));
    EXPECT_EQ(numbers(3).values<float>()[i], 0.5f * low - 1);
    EXPECT_EQ(numbers(3).values<float>()[16 + i], 0.5f * high - 1);
  }
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(numbers(4).values<float>()[i], (i < 32 ? 2.0f : 4.0f) * static_cast<float>(i - 32));
  EXPECT_FALSE(is_quantised(file.tensors[1]));
  const QuantisedMatrix matrix = quantised_matrix(file.tensors[3]);
  EXPECT_EQ(matrix.bits(), 4);
  EXPECT_EQ(matrix.columns(), 32);
  EXPECT_TRUE(matrix.has_offsets());
}

TEST(Gguf, SaysWhatIsWrong) {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add_tensor("w", {32, 2}, 8, std::string(68, 'x'));
  const std::string file = writer.file();
  EXPECT_NE(problem_of(file.substr(0, file.size() - 40)).find("tensor 'w' takes 68 bytes"),
            std::string::npos);
  for (const size_t length : {0, 3, 10, 30, 60, 90})
    EXPECT_NE(problem_of(file.substr(0, length)).find("[model.gguf]"), std::string::npos) << length;
  EXPECT_NE(problem_of(writer.file(4)).find("version 4"), std::string::npos);
  EXPECT_NE(problem_of("GGML" + file.substr(4)).find("not a GGUF file"), std::string::npos);
  GgufWriter unknown;
  unknown.add_tensor("w", {256}, 14, std::string(210, 'x'));
  EXPECT_NE(problem_of(unknown.file()).find("tensor 'w' is stored as Q6_K"), std::string::npos);
  GgufWriter odd;
  odd.add_tensor("w", {30, 2}, 8, std::string(68, 'x'));
  EXPECT_NE(problem_of(odd.file()).find("multiple of 32"), std::string::npos);
  GgufWriter twice;
  twice.add("a", true);
  twice.add("a", true);
  EXPECT_NE(problem_of(twice.file()).find("'a' occurs twice"), std::string::npos);
}

}  // namespace
}  // namespace artel
