#include "artel/tensor/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/file.h"
#include "artel/base/zip.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

std::string npy(const std::string& dictionary, const std::string& elements) {
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(dictionary.size());
  file += static_cast<char>(dictionary.size() >> 8);
  return file + dictionary + elements;
}

std::string reason(const std::string& file) {
  return artel::error_of([&] { parse_npy(make_bytes(file, "x")); });
}

TEST(Npy, RoundTripOfEveryType) {
  const TemporaryFolder folder;
  NamedTensors tensors;
  for (const DType type : {DType::boolean, DType::u8, DType::i8, DType::f16, DType::i16, DType::f32,
                           DType::i32, DType::f64, DType::i64}) {
    Tensor tensor({3, 5}, type);
    for (size_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(i % 2);
    write_npy(folder / "a.npy", tensor);
    const Tensor read = read_npy(folder / "a.npy");
    EXPECT_EQ(read.dtype(), type);
    EXPECT_EQ(read.shape(), tensor.shape());
    EXPECT_EQ(std::memcmp(read.raw(), tensor.raw(), tensor.bytes()), 0);
    tensors.push_back({std::string(to_string(type)), tensor});
  }
  tensors.push_back({"scalar", Tensor::from<float>({}, {7})});
  tensors.push_back({"vector", Tensor::from<float>({2}, {1, 2})});
  tensors.push_back({"empty", Tensor({0, 3})});
  tensors.push_back({"brain", Tensor::from<float>({1}, {1.5f}).to(DType::bf16)});
  write_npz(folder / "a.npz", tensors);
  const NamedTensors read = read_npz(folder / "a.npz");
  ASSERT_EQ(read.size(), tensors.size());
  for (size_t i = 0; i + 1 < tensors.size(); ++i) {
    EXPECT_EQ(read[i].name, tensors[i].name);
    EXPECT_EQ(read[i].tensor.shape(), tensors[i].tensor.shape());
    EXPECT_EQ(std::memcmp(read[i].tensor.raw(), tensors[i].tensor.raw(), tensors[i].tensor.bytes()),
              0);
  }
  EXPECT_EQ(read.back().tensor.values<float>()[0], 1.5f);
}

TEST(Npy, FortranOrderAndBigEndian) {
  const std::string header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
  const Tensor tensor =
      parse_npy(make_bytes(npy(header, std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12)), "x"));
  const auto values = tensor.values<int16_t>();
  EXPECT_EQ((std::vector<int16_t>(values.begin(), values.end())),
            (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, RefusesBrokenFiles) {
  const auto header = [](const std::string& type, const std::string& shape) {
    return "{'descr': " + type + ", 'fortran_order': False, 'shape': " + shape + ", }\n";
  };
  EXPECT_EQ(reason(npy(header("'|u1'", "(3,)"), "abc")), "");
  EXPECT_NE(reason(npy(header("'|u1'", "(4,)"), "abc")).find("got 3 bytes"), std::string::npos);
  EXPECT_NE(reason(npy(header("'|O'", "(3,)"), "abc")).find("'|O'"), std::string::npos);
  EXPECT_NE(reason(npy(header("'<c8'", "(3,)"), "abc")).find("'<c8'"), std::string::npos);
  EXPECT_NE(reason(npy(header("'|u1'", "(-3,)"), "abc")).find("'-3'"), std::string::npos);
  EXPECT_NE(reason(npy(header("'|u1'", "3"), "abc")).find("tuple"), std::string::npos);
  EXPECT_NE(reason(npy(header("'<f8'", "(2305843009213693952,)"), "")).find("got 0 bytes"),
            std::string::npos);
  EXPECT_NE(reason(npy(header("'<f8'", "(99999999999, 99999999999)"), "")).find("too large"),
            std::string::npos);
  EXPECT_NE(reason("\x93NUMPY").find("truncated"), std::string::npos);
}

TEST(Zip, RefusesAWrongChecksumAndATruncatedFile) {
  const TemporaryFolder folder;
  write_npz(folder / "a.npz", {{"w", Tensor::from<float>({2}, {1, 2})}});
  std::string file = read_file(folder / "a.npz");
  EXPECT_NO_THROW(parse_npz(make_bytes(file, "x")));
  EXPECT_THROW(parse_npz(make_bytes(file.substr(0, file.size() - 30), "x")), Error);
  const size_t number = file.find("\x80\x3f");
  ASSERT_NE(number, std::string::npos);
  file[number] ^= 1;
  EXPECT_THROW(
      {
        try {
          parse_npz(make_bytes(file, "x"));
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("[x:w.npy] wrong checksum"), std::string::npos);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace artel
