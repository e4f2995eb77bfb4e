#include "artel/base/appended_file.h"

#include <gtest/gtest.h>

#include "artel/base/disk.h"
#include "artel/base/file.h"
#include "tests/support/file_limit.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(AppendedFile, KeepsWhatADiskRefuses) {
  const TemporaryFolder folder;
  AppendedFile file(folder / "lines");
  file.append("one\n");
  file.sync();
  {
    const FileLimit full(6);
    file.append("two\n");
    try {
      file.flush();
      FAIL() << "wrote beyond the limit";
    } catch (const Error& error) {
      EXPECT_TRUE(is_disk_error(error)) << error.what();
    }
    EXPECT_EQ(read_file(folder / "lines"), "one\n") << "half a line";
    file.append("three\n");
  }
  file.flush();
  EXPECT_EQ(read_file(folder / "lines"), "one\ntwo\nthree\n");
}

TEST(AppendedFile, GoesOnAndWritesTheRestAtItsEnd) {
  const TemporaryFolder folder;
  for (const char* line : {"one\n", "two\n"}) {
    AppendedFile file(folder / "lines");
    file.append(line);
  }
  EXPECT_EQ(read_file(folder / "lines"), "one\ntwo\n");
  EXPECT_THROW(AppendedFile(folder / "none/lines"), Error);
}

TEST(Disk, SaysWhatIsFree) {
  const TemporaryFolder folder;
  const std::string text = free_space_at(folder / "not/yet");
  EXPECT_NE(text.find(" free in "), std::string::npos) << text;
  EXPECT_EQ(text.find("unknown"), std::string::npos) << text;
  EXPECT_NE(text.find("not/yet"), std::string::npos) << text;
}

}  // namespace
}  // namespace artel
