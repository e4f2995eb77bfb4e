#include "artel/base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "artel/base/appended_file.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
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
    const std::string holder =
        fmt::format("process {} on host {} holds the lock", ::getpid(), host_name());
    EXPECT_NE(std::string(error.what()).find(holder), std::string::npos) << error.what();
  }
  first.reset();
  FileLock(folder / "lock", Deadline::after(0.05));
}

TEST(FileLock, WaitsForTheNameOfAHolderThatHasOnlyJustTakenIt) {
  const TemporaryFolder folder;
  const int file = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  std::jthread signs([file] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(::pwrite(file, "process 7 on host a\n", 20, 0), 20);
  });
  try {
    FileLock(folder / "lock", Deadline::after(0));
    ADD_FAILURE() << "held twice";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("process 7 on host a holds the lock"),
              std::string::npos)
        << error.what();
  }
  signs.join();
  ::close(file);
}

// As by another worker of a run when the one that had it was stopped.
TEST(FileLock, CanBeTakenOver) {
  const TemporaryFolder folder;
  const FileLock first(folder / "lock");
  EXPECT_TRUE(first.held());
  const std::unique_ptr<FileLock> second = FileLock::take_over(folder / "lock");
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(second->held());
  EXPECT_THROW(FileLock(folder / "lock", Deadline::after(0)), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(FileLock, IsSeenWithoutBeingTouched) {
  const TemporaryFolder folder;
  EXPECT_FALSE(FileLock::holder_of(folder / "lock"));
  std::optional<FileLock> lock(folder / "lock");
  EXPECT_EQ(FileLock::holder_of(folder / "lock"),
            fmt::format("process {} on host {}", ::getpid(), host_name()));
  lock.reset();
  EXPECT_FALSE(FileLock::holder_of(folder / "lock"));
}

TEST(FileLock, IsLostWithItsFile) {
  const TemporaryFolder folder;
  const FileLock lock(folder / "lock");
  std::filesystem::remove(folder / "lock");
  EXPECT_FALSE(lock.held());
  EXPECT_TRUE(FileLock(folder / "lock", Deadline::after(0)).held());
}

TEST(FileLock, SaysWhereItCannotBe) { EXPECT_THROW(FileLock("/nonexistent/lock"), Error); }

TEST(FileLock, DoesNotFollowALink) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "precious", "do not touch");
  std::filesystem::create_symlink(folder / "precious", folder / "lock");
  EXPECT_THROW(FileLock(folder / "lock"), Error);
  EXPECT_FALSE(FileLock::holder_of(folder / "lock"));
  EXPECT_EQ(read_file(folder / "precious"), "do not touch");
  EXPECT_THROW(AppendedFile(folder / "lock"), Error);
  // Taking over replaces the link itself.
  EXPECT_TRUE(FileLock::take_over(folder / "lock")->held());
  EXPECT_EQ(read_file(folder / "precious"), "do not touch");
}

}  // namespace
}  // namespace artel
