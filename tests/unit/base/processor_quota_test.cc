#include "artel/base/processor_quota.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "artel/base/file.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, text);
}

TEST(ProcessorQuota, TheLeastOfAllLevelsCounts) {
  const TemporaryFolder folder;
  EXPECT_FALSE(processor_quota("0::/a/b\n", folder.path()));
  write(folder.path() / "a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(processor_quota("0::/a/b\n", folder.path()));
  write(folder.path() / "a/cpu.max", "150000 100000\n");
  EXPECT_EQ(processor_quota("0::/a/b\n", folder.path()), 1.5);
  write(folder.path() / "a/b/cpu.max", "15000 100000\n");
  EXPECT_EQ(processor_quota("0::/a/b\n", folder.path()), 0.15);
  EXPECT_FALSE(processor_quota("0::/c\n", folder.path()));
}

TEST(ProcessorQuota, TheFirstVersionOfCgroups) {
  const TemporaryFolder folder;
  write(folder.path() / "cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  write(folder.path() / "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processor_quota("3:memory:/job\n4:cpu,cpuacct:/job\n", folder.path()), 2);
  write(folder.path() / "cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(processor_quota("4:cpu,cpuacct:/job\n", folder.path()));
}

}  // namespace
}  // namespace artel
