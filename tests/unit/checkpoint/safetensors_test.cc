#include "artel/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/file.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel::checkpoint {
namespace {

Bytes file_of(const std::string& header, const std::string& data) {
  std::string content(8, '\0');
  for (size_t i = 0; i < 8; ++i) content[i] = static_cast<char>(header.size() >> (8 * i));
  return make_bytes(content + header + data, "x.safetensors");
}

std::string reason(const Bytes& bytes) {
  return artel::error_of([&] { parse_safetensors(bytes); });
}

TEST(Safetensors, EveryTypeSurvivesARoundTrip) {
  const TemporaryFolder folder;
  NamedTensors tensors;
  for (const DType type : {DType::boolean, DType::u8, DType::i8, DType::f16, DType::bf16,
                           DType::i16, DType::f32, DType::i32, DType::f64, DType::i64}) {
    Tensor tensor({3, 5}, type);
    for (size_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(i % 2);
    tensors.push_back({std::string(to_string(type)), tensor});
  }
  tensors.push_back({"scalar", Tensor::from<float>({}, {7})});
  tensors.push_back({"empty", Tensor({0, 4})});
  write_safetensors(folder / "a", tensors, {{"format", "artel"}});

  const Safetensors read = read_safetensors(folder / "a");
  EXPECT_EQ(read.metadata, (Metadata{{"format", "artel"}}));
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (const NamedTensor& expected : tensors) {
    const auto found = std::find_if(read.tensors.begin(), read.tensors.end(),
                                    [&](auto& t) { return t.name == expected.name; });
    ASSERT_NE(found, read.tensors.end()) << expected.name;
    EXPECT_EQ(found->tensor.dtype(), expected.tensor.dtype());
    EXPECT_EQ(found->tensor.shape(), expected.tensor.shape());
    EXPECT_EQ(std::memcmp(found->tensor.raw(), expected.tensor.raw(), expected.tensor.bytes()), 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(found->tensor.raw()) % size_of(found->tensor.dtype()),
              0u);
  }
}

TEST(Safetensors, ATensorOfAMappedFileMayBeWritten) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"w", Tensor::from<float>({2}, {1, 2})}});
  Safetensors read = read_safetensors(folder / "a");
  read.tensors[0].tensor.values<float>()[0] = 9;
  EXPECT_EQ(read_safetensors(folder / "a").tensors[0].tensor.values<float>()[0], 1);
}

TEST(Safetensors, ReadsUnalignedData) {
  const std::string one("\0\0\x80\x3f", 4);
  const Safetensors read =
      parse_safetensors(file_of(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} )", one));
  EXPECT_EQ(read.tensors.at(0).tensor.values<float>()[0], 1.0f);
}

TEST(Safetensors, RefusesWhatDoesNotFit) {
  const auto header = [](const std::string& type, const std::string& shape,
                         const std::string& offsets) {
    return "{\"w\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
           ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(reason(file_of(header("F32", "[1]", "[0,4]"), "abcd")), "");
  EXPECT_NE(reason(file_of(header("F32", "[1]", "[0,4]"), "abc")).find("truncated"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F32", "[1]", "[0,4]"), "abcde")).find("holds 5"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F32", "[2]", "[0,4]"), "abcd")).find("got 4 bytes"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F32", "[-1]", "[0,4]"), "abcd")).find("extent -1"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F64", "[2305843009213693952]", "[0,0]"), "")).find("got 0"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F8_E4M3", "[4]", "[0,4]"), "abcd")).find("F8_E4M3"),
            std::string::npos);
  EXPECT_NE(reason(file_of(header("F32", "[1]", "[4,0]"), "abcd")).find("data_offsets"),
            std::string::npos);
  EXPECT_NE(reason(file_of("[]", "")).find("not a JSON object"), std::string::npos);
  EXPECT_NE(reason(file_of("{\"w\":3}", "")).find("header"), std::string::npos);
  EXPECT_NE(reason(make_bytes(std::string(8, '\xff'), "x")).find("allowed"), std::string::npos);
  EXPECT_NE(reason(make_bytes("abc", "x")).find("truncated"), std::string::npos);
  const std::string twice = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                            R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})";
  EXPECT_NE(reason(file_of(twice, "abc")).find("overlap"), std::string::npos);
}

TEST(Safetensors, RefusesOneNameForTwoTensors) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_safetensors(folder / "a", {{"w", Tensor()}, {"w", Tensor()}}), Error);
}

}  // namespace
}  // namespace artel::checkpoint
