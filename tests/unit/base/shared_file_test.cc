#include "artel/base/shared_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "tests/support/small_disk.h"

namespace artel {
namespace {

TEST(SharedFile, IsZeroesAtFirstAndThenWhatAnybodyWrites) {
  const TemporaryFolder folder;
  const SharedFile one(folder / "file", 10000);
  EXPECT_EQ(one.data()[9999], std::byte{0});
  std::memcpy(one.data() + 5000, "text", 4);
  const SharedFile other(folder / "file", 10000);
  EXPECT_EQ(read_file(folder / "file").substr(5000, 4), "text");
  other.data()[5000] = std::byte{'n'};
  EXPECT_EQ(one.data()[5000], std::byte{'n'});
}

// Written as memory, a disk without room would end the process by a signal.
TEST(SharedFile, AFullDiskIsAnError) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  const SharedFile fits(disk.path() / "fits", 500 << 10);
  std::memset(fits.data(), 1, 500 << 10);
  try {
    const SharedFile other(disk.path() / "other", 600 << 10);
    FAIL() << "there is no room for it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_EQ(std::string(error.what()), fmt::format("[{}] cannot be mapped (600 KiB): No space "
                                                     "left on device",
                                                     (disk.path() / "other").string()));
  }
}

}  // namespace
}  // namespace artel
