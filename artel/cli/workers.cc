#include "artel/cli/workers.h"

#include <fmt/format.h>

#include "artel/train/launch.h"

namespace artel::cli {

int launch_here(int workers) {
  comm::GroupOptions group = {.transport = "shm",
                              .size = workers,
                              .address = "run-" + random_token(),
                              .token = random_token()};
  std::vector<WorkerCommand> commands;
  for (group.rank = 0; group.rank < workers; ++group.rank)
    commands.push_back(
        {fmt::format("worker {}", group.rank), own_command(), worker_environment(group)});
  return supervise(commands);
}

}  // namespace artel::cli
