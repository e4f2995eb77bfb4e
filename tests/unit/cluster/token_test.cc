// Where tokens come from.
#include "artel/cluster/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/file.h"

namespace artel {
namespace {

class TokenFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(testing::TempDir()) / ("token_test_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ::setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    ::unsetenv("ARTEL_TOKEN");
  }
  void TearDown() override {
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("ARTEL_TOKEN");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_;
};

TEST_F(TokenFolder, ComesFromTheArgumentTheFileOrTheEnvironment) {
  const std::string file = folder_ / "secret";
  write_file_atomically(file, std::string_view("from the file\n"));
  EXPECT_EQ(given_token("", ""), "");
  ::setenv("ARTEL_TOKEN", "from the environment", 1);
  EXPECT_EQ(given_token("", ""), "from the environment");
  EXPECT_EQ(given_token("", file), "from the file");
  EXPECT_EQ(given_token("itself", file), "itself");
  write_file_atomically(file, std::string_view(" \n"));
  EXPECT_THROW(given_token("", file), Error);
  EXPECT_THROW(given_token("", folder_ / "missing"), Error);
}

TEST_F(TokenFolder, JoiningAtThisMachineNeedsNone) {
  const std::string token = joining_token("", "", "127.0.0.1:7");
  EXPECT_EQ(token.size(), 64u);
  EXPECT_EQ(joining_token("", "", "[::1]:7"), token);
  EXPECT_NE(joining_token("", "", "127.0.0.1:8"), token);
  EXPECT_EQ(joining_token("", "", "192.0.2.1:7"), "");
  EXPECT_EQ(joining_token("given", "", "127.0.0.1:7"), "given");
}

TEST_F(TokenFolder, OfAUserIsMadeOnceAndKeptFromOthers) {
  // All tasks of a job ask at once.
  std::vector<std::string> tokens(8);
  std::vector<std::thread> tasks;
  for (std::string& token : tokens)
    tasks.emplace_back([&token] { token = private_token("slurm-7-1"); });
  for (std::thread& task : tasks) task.join();
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), 1u);
  EXPECT_EQ(tokens[0].size(), 64u);
  EXPECT_NE(tokens[0], private_token("slurm-7-2"));
  const std::filesystem::path key = folder_ / "artel" / "key";
  struct stat status {};
  ASSERT_EQ(::stat(key.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "artel"), {}), 1);
  // Another user has another key.
  std::filesystem::remove(key);
  EXPECT_NE(private_token("slurm-7-1"), tokens[0]);
  ::chmod(key.c_str(), 0644);
  EXPECT_THROW(private_token("slurm-7-1"), Error);
}

}  // namespace
}  // namespace artel
