// The environment variables of launchers.
#include "artel/cluster/launcher.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "artel/base/error.h"

namespace artel {
namespace {

// Sets variables for the duration of a test.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> variables_;
};

TEST(Launcher, NobodyStartedAProcessAlone) {
  EXPECT_FALSE(launched_group());
  EXPECT_TRUE(speaks_for_the_run());
}

TEST(Launcher, OneProcessGivesTheCause) {
  EXPECT_TRUE(is_first_to_say("nobody else is there"));
  EXPECT_EQ(own_name(), "");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  const int number = fileno(file.get());
  ASSERT_EQ(fcntl(number, F_SETFL, O_APPEND), 0);
  const std::string of_another("1 no such file\0", 15);  // process 1
  ASSERT_EQ(write(number, of_another.data(), of_another.size()), 15);
  const Environment environment(
      {{"ARTEL_SAID", std::to_string(number)}, {"ARTEL_CALLED", "server 0"}});
  EXPECT_FALSE(is_first_to_say("no such file"));
  EXPECT_TRUE(is_first_to_say("no such"));
  EXPECT_EQ(own_name(), "server 0");
}

TEST(Launcher, MpirunNamesTheSizeOnly) {
  const Environment environment({{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "1"}});
  EXPECT_EQ(launched_group()->transport, "mpi");
  EXPECT_EQ(launched_group()->size, 3);
  EXPECT_FALSE(speaks_for_the_run());
}

TEST(Launcher, SlurmMeetsWithoutMpi) {
  std::map<std::string, std::string> variables = {
      {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"},
      {"SLURM_JOB_ID", "7"},         {"SLURM_STEP_ID", "1"},
      {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "n[03-04]"}};
  {
    const Environment one_node(variables);
    EXPECT_EQ(launched_group()->transport, "shm");
    EXPECT_EQ(launched_group()->address, "slurm-7-1");
    EXPECT_EQ(launched_group()->rank, 2);
    EXPECT_EQ(launched_group()->size, 4);
  }
  variables["SLURM_STEP_NUM_NODES"] = "2";
  variables["XDG_CONFIG_HOME"] = testing::TempDir() + "launcher_test_" + std::to_string(::getpid());
  {
    const Environment two_nodes(variables);
    EXPECT_EQ(launched_group()->transport, "gloo");
    EXPECT_EQ(launched_group()->address, "n03:20449");
    // All tasks have the same token, which does not follow from the number of the job.
    const std::string token = launched_group()->token;
    EXPECT_EQ(token.size(), 64u);
    EXPECT_EQ(launched_group()->token, token);
    std::filesystem::remove_all(variables["XDG_CONFIG_HOME"]);
    EXPECT_NE(launched_group()->token, token);
    const Environment given(std::map<std::string, std::string>{{"ARTEL_TOKEN", "of the job"}});
    EXPECT_EQ(launched_group()->token, "of the job");
  }
  // The environment of a cluster with many earlier jobs.
  variables["SLURM_JOB_ID"] = "67000000";
  {
    const Environment late(variables);
    EXPECT_EQ(launched_group()->address, "n03:24001");
  }
  std::filesystem::remove_all(variables["XDG_CONFIG_HOME"]);
  variables["PMIX_RANK"] = "2";
  const Environment with_pmix(variables);
  EXPECT_EQ(launched_group()->transport, "mpi");
}

TEST(Launcher, RefusesWhatIsNoNumber) {
  const Environment environment(std::map<std::string, std::string>{{"OMPI_COMM_WORLD_SIZE", "3x"}});
  EXPECT_THROW(launched_group(), Error);
}

TEST(Launcher, FirstHostOfSlurmsLists) {
  EXPECT_EQ(first_host("n01"), "n01");
  EXPECT_EQ(first_host("n01,n02"), "n01");
  EXPECT_EQ(first_host("n[01-04,7],login"), "n01");
  EXPECT_EQ(first_host("rack[2,5]n[8-9]"), "rack2n8");
  EXPECT_EQ(first_host("n[3"), "n3");
  EXPECT_EQ(first_host(""), "");
}

}  // namespace
}  // namespace artel
