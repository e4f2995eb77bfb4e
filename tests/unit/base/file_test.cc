#include "artel/base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "artel/base/error.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(File, WritesAtomicallyAndReadsBack) {
  const TemporaryFolder folder;
  const auto path = folder / "a.txt";
  write_file_atomically(path, "first");
  write_file_atomically(path, "second");
  EXPECT_EQ(read_file(path), "second");
  const MappedFile mapped(path);
  EXPECT_EQ(mapped.bytes().size(), 6u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, NamesTheMissingFile) {
  try {
    read_file("/nonexistent/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_STREQ(error.what(), "[/nonexistent/x] cannot open: No such file or directory");
  }
}

TEST(File, APipeIsRefusedInsteadOfWaitedFor) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_file(pipe), Error);
  EXPECT_THROW(MappedFile{pipe}, Error);
  EXPECT_THROW(read_file(folder.path()), Error);
}

TEST(File, TheEndOfAFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "0123456789");
  EXPECT_EQ(read_end(folder / "file", 3), "789");
  EXPECT_EQ(read_end(folder / "file", 30), "0123456789");
  EXPECT_THROW(read_end(folder / "missing", 3), Error);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(read_end(folder / "pipe", 3), Error);
}

}  // namespace
}  // namespace artel
