#include "artel/base/checksum.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <vector>

#include "artel/base/file.h"
#include "artel/base/random.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

std::vector<std::byte> some_bytes(size_t count) {
  Random random({count});
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next_u32());
  return bytes;
}

uint32_t by_zlib(std::span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

TEST(Checksum, IsThatOfZlibForAnyLengthAndBeginning) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  for (size_t count = 0; count < 300; ++count)
    for (const size_t begin : {0, 1, 7, 16}) {
      const auto part = std::span(bytes).subspan(begin, count);
      EXPECT_EQ(crc32(part), by_zlib(part, 0)) << begin << " " << count;
      EXPECT_EQ(crc32(part, 0x12345678), by_zlib(part, 0x12345678)) << begin << " " << count;
    }
}

TEST(Checksum, ContinuesWhereAnotherEnded) {
  const std::vector<std::byte> bytes = some_bytes(1000);
  for (const size_t cut : {1, 63, 64, 65, 500})
    EXPECT_EQ(crc32(std::span(bytes).subspan(cut), crc32(std::span(bytes).first(cut))),
              crc32(bytes));
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const TemporaryFolder folder;
  const std::vector<std::byte> bytes = some_bytes(200'000);
  {
    AtomicFile file(folder / "file");
    file.write(std::span(bytes).first(12345));
    file.write(std::span(bytes).subspan(12345));
    file.finish();
  }
  const FileSummary summary = summarise_file(folder / "file");
  EXPECT_EQ(summary.bytes, bytes.size());
  EXPECT_EQ(summary.crc32, crc32(bytes));
}

TEST(AtomicFile, LeavesNothingIfItIsNotFinished) {
  const TemporaryFolder folder;
  AtomicFile(folder / "file").write(some_bytes(10));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace artel
