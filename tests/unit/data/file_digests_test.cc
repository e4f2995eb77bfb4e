#include "artel/data/file_digests.h"

#include <gtest/gtest.h>

#include <thread>

#include "artel/base/file.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

class FileDigestsTest : public ::testing::Test {
 protected:
  FileDigestsTest() {
    fs::create_directories(folder_ / "data/sub");
    write_file_atomically(folder_ / "data/a.csv", std::string(5000, 'x'));
    write_file_atomically(folder_ / "data/sub/b.csv", "b");
  }
  FileDigestOptions options() const { return {.cache = folder_ / "cache"}; }
  static void wait_until_old() { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }

  TemporaryFolder folder_;
};

TEST_F(FileDigestsTest, NamesAndContentsCountAndPlacesDoNot) {
  const FileDigests digests({folder_ / "data"}, {});
  ASSERT_TRUE(digests.done());
  ASSERT_EQ(digests.files().size(), 2u);
  EXPECT_EQ(digests.files()[0].name, "a.csv");
  EXPECT_EQ(digests.files()[0].bytes, 5000u);
  EXPECT_EQ(digests.files()[1].name, "sub/b.csv");
  fs::copy(folder_ / "data", folder_ / "copy", fs::copy_options::recursive);
  EXPECT_EQ(FileDigests({folder_ / "copy"}, {}).digest(), digests.digest());
  fs::rename(folder_ / "copy/a.csv", folder_ / "copy/c.csv");
  EXPECT_NE(FileDigests({folder_ / "copy"}, {}).digest(), digests.digest());
}

// One byte, with the size and the time of the content as they were.
TEST_F(FileDigestsTest, AFlippedByteIsFoundThoughDigestsAreKept) {
  wait_until_old();
  const uint64_t before = FileDigests({folder_ / "data"}, options()).digest();
  const FileDigests known({folder_ / "data"}, options());
  EXPECT_EQ(known.bytes_read(), 0u);
  EXPECT_EQ(known.digest(), before);
  const fs::path file = folder_ / "data/a.csv";
  const auto time = fs::last_write_time(file);
  std::string text(5000, 'x');
  text[2500] = 'y';
  write_file_atomically(file, text);
  fs::last_write_time(file, time);
  const FileDigests changed({folder_ / "data"}, options());
  EXPECT_EQ(changed.bytes_read(), 5000u);
  EXPECT_NE(changed.digest(), before);
}

TEST_F(FileDigestsTest, ManyBytesAreReadInTheBackground) {
  FileDigests digests({folder_ / "data"}, {.most_at_once = 10});
  digests.wait();
  EXPECT_TRUE(digests.done());
  EXPECT_EQ(digests.digest(), FileDigests({folder_ / "data"}, {}).digest());
}

}  // namespace
}  // namespace artel::data
