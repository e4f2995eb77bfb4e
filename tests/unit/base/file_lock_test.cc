#include "artel/base/file_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "artel/base/error.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(FileLock, ExcludesOthersWhileItLives) {
  const TemporaryFolder folder;
  std::optional<FileLock> first(folder / "lock");
  try {
    FileLock(folder / "lock", Deadline::after(0.05));
    FAIL() << "held twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
    const std::string holder = "process " + std::to_string(::getpid()) + " holds the lock";
    EXPECT_NE(std::string(error.what()).find(holder), std::string::npos) << error.what();
  }
  first.reset();
  FileLock(folder / "lock", Deadline::after(0.05));
}

TEST(FileLock, SaysWhereItCannotBe) { EXPECT_THROW(FileLock("/nonexistent/lock"), Error); }

}  // namespace
}  // namespace artel
