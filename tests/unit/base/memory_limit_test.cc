#include "artel/base/memory_limit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(MemoryLimit, IsTheLeastOfAProcesssControlGroups) {
  const TemporaryFolder folder;
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
  };
  EXPECT_EQ(control_group_limit(folder.path()), UINT64_MAX);
  put("proc/self/cgroup", "9:cpu,cpuacct:/x\n7:memory:/slurm/job_1\n0::/\nbroken\n");
  put("sys/fs/cgroup/cpu,cpuacct/x/memory.limit_in_bytes", "5");
  EXPECT_EQ(control_group_limit(folder.path()), UINT64_MAX);
  put("sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "3000\n");
  EXPECT_EQ(control_group_limit(folder.path()), 3000);
  put("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2000\n");
  EXPECT_EQ(control_group_limit(folder.path()), 2000);
  put("proc/self/cgroup", "0::/user/run\n");
  put("sys/fs/cgroup/user/run/memory.max", "max\n");
  EXPECT_EQ(control_group_limit(folder.path()), UINT64_MAX);
  put("sys/fs/cgroup/user/memory.max", "1000\n");
  EXPECT_EQ(control_group_limit(folder.path()), 1000);
}

TEST(MemoryLimit, IsANumberHere) { EXPECT_GT(memory_limit_bytes(), 0); }

}  // namespace
}  // namespace artel
