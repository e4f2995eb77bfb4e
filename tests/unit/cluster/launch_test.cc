#include "artel/cluster/launch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>

namespace artel {
namespace {

// A worker that would end with this code if no signal came.
constexpr int kUndisturbed = 3;

WorkerCommand sleeper() {
  return {.name = "worker 0", .arguments = {}, .body = [] {
            ::sleep(20);
            return kUndisturbed;
          }};
}

// Without this guarantee a run that is interrupted while it starts a worker never ends.
TEST(Supervise, PassesOnAnInterruptThatComesWhileAWorkerIsStarted) {
  const pid_t test = ::getpid();
  const auto interrupted_fork = [&] {
    const pid_t process = ::fork();
    if (::getpid() == test) ::raise(SIGINT);
    return process;
  };
  EXPECT_EQ(supervise({sleeper()}, {.fork = interrupted_fork}), 128 + SIGINT);
}

TEST(Supervise, AnInterruptBeforeTheForkReachesTheWorker) {
  const auto interrupted_fork = [] {
    ::raise(SIGINT);
    return ::fork();
  };
  EXPECT_EQ(supervise({sleeper()}, {.fork = interrupted_fork}), 128 + SIGINT);
}

}  // namespace
}  // namespace artel
