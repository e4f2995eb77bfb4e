#include "artel/cli/workers.h"

#include <fmt/format.h>

#include "artel/train/launch.h"

namespace artel::cli {

int launch_here(int workers, int servers, bool outlives_workers, bool servers_inside) {
  comm::GroupOptions group = {.transport = "shm",
                              .size = workers + servers,
                              .address = "run-" + random_token(),
                              .token = random_token()};
  std::vector<WorkerCommand> commands;
  for (group.rank = 0; group.rank < (servers_inside ? workers : group.size); ++group.rank) {
    const bool serves = group.rank >= workers;
    commands.push_back({.name = serves ? fmt::format("server {}", group.rank - workers)
                                       : fmt::format("worker {}", group.rank),
                        .arguments = own_command(),
                        .environment = worker_environment(group),
                        .expendable = outlives_workers && !serves && group.rank > 0});
  }
  return supervise(commands);
}

}  // namespace artel::cli
