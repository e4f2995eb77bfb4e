// Ranks as forked processes, on each transport that works without a launcher: every collective, a
// rank that is killed, and a rank that is stopped.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <regex>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "collectives.h"

namespace artel::comm {
namespace {

// A process that runs `body` as one rank; what it returns or throws is read back through a pipe.
class RankProcess {
 public:
  RankProcess(const GroupOptions& options, const std::function<std::string(Group&)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    process_ = fork();
    if (process_ == 0) {
      close(ends[0]);
      std::string result;
      try {
        Group group = Group::connect(options);
        result = body(group);
        if (testing::Test::HasFailure()) result = "a check failed in the process";
      } catch (const std::exception& error) {
        result = error.what();
      }
      const Clock::time_point end = Clock::now();
      (void)!write(ends[1], &end, sizeof(end));
      (void)!write(ends[1], result.data(), result.size());
      _exit(0);
    }
    close(ends[1]);
    output_ = FileHandle(ends[0]);
  }

  pid_t process() const { return process_; }
  void signal(int number) const { kill(process_, number); }

  // When the body ended, by the clock common to all processes; valid after `result`.
  Clock::time_point end() const { return end_; }

  // Waits for its end.
  std::string result() {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(output_.get(), buffer, sizeof(buffer))) > 0;)
      text.append(buffer, got);
    int status = 0;
    waitpid(process_, &status, 0);
    text.erase(0, text.copy(reinterpret_cast<char*>(&end_), sizeof(end_)));
    // A silent exit would otherwise look like an empty answer.
    if (WIFSIGNALED(status)) text += fmt::format("ended by signal {}", WTERMSIG(status));
    return text;
  }

 private:
  pid_t process_ = -1;
  Clock::time_point end_;
  FileHandle output_;
};

class Processes : public testing::TestWithParam<const char*> {
 protected:
  std::vector<RankProcess> start(int size, const std::function<std::string(Group&)>& body,
                                 double timeout = 60) {
    GroupOptions options{.transport = GetParam(), .size = size, .token = "t", .timeout = timeout};
    options.address = options.transport == "shm" ? unique_name() : free_address();
    std::vector<RankProcess> processes;
    for (int rank = 0; rank < size; ++rank) {
      options.rank = rank;
      processes.emplace_back(options, body);
    }
    return processes;
  }
};
INSTANTIATE_TEST_SUITE_P(Transport, Processes, testing::Values("shm", "gloo"));

TEST_P(Processes, EveryCollective) {
  for (const int size : {2, 3, 8}) {
    auto processes = start(size, [](Group& group) {
      check_every_collective(group, Algorithm::automatic);
      return std::string("passed");
    });
    for (RankProcess& process : processes) EXPECT_EQ(process.result(), "passed");
  }
}

// Creates a file when the group is ready, so the test can strike at the right moment.
std::string endless(Group& group, const std::string& ready) {
  group.set_phase("backward");
  group.barrier();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // a sign of life passes
  if (group.rank() == 0) write_file_atomically(ready, std::string_view("ready"));
  std::vector<float> data(1 << 18);
  while (true) group.all_reduce(bytes(data), ElementType::f32, {}, {.label = "bucket 5"});
}

void wait_for_file(const std::string& path) {
  while (access(path.c_str(), F_OK) != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  unlink(path.c_str());
}

TEST_P(Processes, AKilledRankWakesEverybodyWithinASecondAndIsNamed) {
  for (const int victim : {0, 2}) {
    // A busy machine may keep a rank from running for a second, but not each time.
    double slowest = 1e9;
    for (int attempt = 0; attempt < 3 && slowest > 1.0; ++attempt) {
      const std::string ready = fmt::format("{}/artel-{}", testing::TempDir(), unique_name());
      auto processes = start(4, [&](Group& group) { return endless(group, ready); });
      wait_for_file(ready);
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      processes[victim].signal(SIGKILL);
      EXPECT_EQ(processes[victim].result(), "ended by signal 9");
      const Clock::time_point death = Clock::now();
      const std::regex expected(fmt::format(
          R"(\[comm\] rank {} on host {} \(process {}\) died, last seen \d\.\d s ago in backward)",
          victim, host_name(), processes[victim].process()));
      slowest = 0;
      for (int rank = 0; rank < 4; ++rank) {
        if (rank == victim) continue;
        const std::string result = processes[rank].result();
        EXPECT_TRUE(std::regex_match(result, expected)) << "rank " << rank << ": " << result;
        slowest = std::max(slowest, seconds_between(death, processes[rank].end()));
      }
    }
    EXPECT_LT(slowest, 1.0) << "victim " << victim;
  }
}

TEST_P(Processes, AStoppedRankIsNamedAtTheDeadline) {
  const std::string ready = fmt::format("{}/artel-{}", testing::TempDir(), unique_name());
  auto processes = start(
      3, [&](Group& group) { return endless(group, ready); }, 2);
  wait_for_file(ready);
  processes[1].signal(SIGSTOP);
  const std::string first = processes[0].result();
  const std::string third = processes[2].result();
  processes[1].signal(SIGKILL);
  processes[1].result();
  const std::regex expected(fmt::format(
      R"(\[comm\] all_reduce #\d+ 'bucket 5', 1 MiB: gave up after \d\.\d s of waiting )"
      R"(for rank 1 on host {}, last seen \d\.\d s ago in backward)"
      R"(( \(reported by rank [02]\))?)",
      host_name()));
  EXPECT_TRUE(std::regex_match(first, expected)) << first;
  EXPECT_TRUE(std::regex_match(third, expected)) << third;
}

}  // namespace
}  // namespace artel::comm
