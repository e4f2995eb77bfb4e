#include "artel/data/images/idx.h"

#include <gtest/gtest.h>

#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "tests/support/gzip.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

std::string idx(uint8_t type, const std::vector<uint32_t>& extents, const std::string& elements) {
  std::string file = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents)
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift);
  return file + elements;
}

std::string reason(const std::string& file) {
  try {
    parse_idx(make_bytes(file, "x"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    return error.what();
  }
  return "accepted";
}

TEST(Idx, ReadsBytesAndBigEndianNumbers) {
  const Tensor bytes = parse_idx(make_bytes(idx(8, {2, 3}, "abcdef"), "x"));
  EXPECT_EQ(bytes.shape(), (Shape{2, 3}));
  EXPECT_EQ(bytes.values<uint8_t>()[5], 'f');
  const Tensor numbers =
      parse_idx(make_bytes(idx(12, {2}, std::string("\0\0\1\2\xff\xff\xff\xfe", 8)), "x"));
  EXPECT_EQ(numbers.values<int32_t>()[0], 258);
  EXPECT_EQ(numbers.values<int32_t>()[1], -2);
}

TEST(Idx, RefusesBrokenFilesAndSaysWhere) {
  EXPECT_EQ(reason(idx(8, {3}, "abc")), "accepted");
  EXPECT_EQ(reason(idx(8, {4}, "abc")),
            "[x] offset 8: shape [4] of u8 needs 4 bytes, but 3 follow");
  EXPECT_EQ(reason(idx(8, {2}, "abc")),
            "[x] offset 8: shape [2] of u8 needs 2 bytes, but 3 follow");
  EXPECT_NE(reason(idx(8, {0xffffffff, 0xffffffff, 0xffffffff}, "abc")).find("truncated"),
            std::string::npos);
  EXPECT_NE(reason(idx(7, {3}, "abc")).find("element type 0x07"), std::string::npos);
  EXPECT_NE(reason(idx(8, {}, "")).find("rank 0"), std::string::npos);
  EXPECT_NE(reason("\x1f\x8b rubbish").find("zero bytes"), std::string::npos);
  EXPECT_NE(reason("").find("truncated"), std::string::npos);
}

TEST(Idx, OpensAFolderOfPlainAndGzipFiles) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "train-images-idx3-ubyte",
                        idx(8, {2, 2, 2}, std::string("\0\xff\0\0abcd", 8)));
  write_file_atomically(folder / "train-labels-idx1-ubyte.gz", gzip(idx(8, {2}, "\3\1")));
  write_file_atomically(folder / "t10k-images-idx3-ubyte.gz", gzip(idx(8, {1, 2, 2}, "abcd")));
  write_file_atomically(folder / "t10k-labels-idx1-ubyte", idx(8, {1}, "\2"));
  const auto [train, test] = mnist(folder.path());
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(test->size(), 1);
  EXPECT_EQ(train->layout().input, (Shape{1, 2, 2}));
  EXPECT_EQ(train->layout().classes, 10);
  std::vector<float> pixels(4);
  int32_t label = 0;
  train->read(0, std::as_writable_bytes(std::span(pixels)),
              std::as_writable_bytes(std::span(&label, 1)));
  EXPECT_EQ(pixels, (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(label, 3);
}

TEST(Idx, RefusesALabelThatIsNoClass) {
  const TemporaryFolder folder;
  for (const char* part : {"train", "t10k"}) {
    const std::string stem(part);
    write_file_atomically(folder / (stem + "-images-idx3-ubyte"), idx(8, {1, 1, 1}, "a"));
    write_file_atomically(folder / (stem + "-labels-idx1-ubyte"), idx(8, {1}, "\x0a"));
  }
  EXPECT_THROW(mnist(folder.path()), Error);
}

TEST(Idx, NamesTheMissingFile) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      {
        try {
          mnist(folder.path());
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("train-images-idx3-ubyte"), std::string::npos);
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace artel::data
